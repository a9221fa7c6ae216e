"""An answer of either gateway as a noun: pyslurm's documents and the texts of Slurm's commands are told apart by their first letter."""

from collections.abc import Mapping

from glaunch.cluster import NodeTable, Partition, Reservation
from glaunch.parsers import pyslurm_answers, slurm_config, slurm_nodes, slurm_partitions, slurm_reservations
from glaunch.parsers.pyslurm_answers import is_ours


def read_nodes(text: str) -> NodeTable:
    """The nodes. Raises ParseError."""
    return pyslurm_answers.parse_nodes(text) if is_ours(text) else slurm_nodes.parse_nodes(text)


def read_partitions(text: str) -> tuple[Partition, ...]:
    """The partitions. Raises ParseError."""
    return pyslurm_answers.parse_partitions(text) if is_ours(text) else slurm_partitions.parse_partitions(text)


def read_reservations(text: str) -> tuple[Reservation, ...]:
    """The reservations. Raises ParseError."""
    return pyslurm_answers.parse_reservations(text) if is_ours(text) else slurm_reservations.parse_reservations(text)


def read_config(text: str) -> Mapping[str, str]:
    """The configuration. Raises ParseError."""
    return pyslurm_answers.parse_config(text) if is_ours(text) else slurm_config.parse_config(text)
