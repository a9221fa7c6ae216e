"""The program that alone imports pyslurm: questions on stdin, answers on stdout, one line of JSON each.

It is run by `slurm_native` as a process of its own, because `import pyslurm` ends or hangs the process that has a bad configuration, and
because no call into libslurm can be interrupted. It knows nothing of glaunch and decides nothing: it hands over what pyslurm says,
attribute by attribute, and `parsers/pyslurm_answers` makes nouns of it. Whatever libslurm prints goes to stderr, which nobody sees raw.

A question is `{"ask": NAME, …}`. An answer is a document (`{"schema": "glaunch.pyslurm/1", …}`) or `{"failed": KIND, "errno": N,
"words": …}`, KIND being `said no` (Slurm refused, or did not answer), `unreadable` (pyslurm stumbled over what Slurm said) or
`no pyslurm` (it cannot be imported).
**Source:** pyslurm 25.11.2, tried with Slurm 26.05.5.
"""

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

SCHEMA = "glaunch.pyslurm/1"

CONFIG = {
    "AccountingStorageEnforce": "accounting_storage_enforce",
    "AccountingStorageTRES": "accounting_storage_tres",
    "AccountingStorageType": "accounting_storage_type",
    "ClusterName": "cluster_name",
    "GresTypes": "gres_types",
    "MaxArraySize": "max_array_size",
    "PreemptExemptTime": "preempt_exempt_time",
    "PreemptMode": "preempt_mode",
    "PreemptType": "preempt_type",
    "PrivateData": "private_data",
    "SLURM_CONF": "slurm_conf_path",
    "SLURM_VERSION": "version",
    "SchedulerParameters": "scheduler_parameters",
    "SelectType": "select_type",
    "SelectTypeParameters": "select_type_parameters",
    "TopologyParam": "topology_parameters",
    "TopologyPlugin": "topology_plugin",
}
NODE = (
    *("name", "address", "state", "effective_cpus", "allocated_cpus", "real_memory", "memory_reserved_for_system", "allocated_memory"),
    *("weight", "active_features", "configured_gres", "allocated_tres", "partitions"),
)
PARTITION = (
    *("name", "nodes", "state", "is_default", "max_time", "default_time", "max_nodes", "min_nodes", "allowed_accounts", "allowed_groups"),
    *("allowed_qos", "oversubscribe", "preempt_mode", "default_cpus_per_gpu", "default_memory_per_gpu", "denied_accounts", "denied_qos"),
    *("is_hidden", "is_root_only", "requires_reservation", "priority_tier", "qos"),
)
RESERVATION = ("name", "nodes", "start_time", "end_time", "users", "accounts", "partition", "groups")
STALE = (ValueError, TypeError, NameError, AttributeError, KeyError, IndexError)
"""What pyslurm itself raises over a value that it cannot read, or a field that its Slurm does not have."""


def fields(names: Sequence[str], thing: object) -> dict[str, Any]:
    """The attributes of one thing of pyslurm's, by name."""
    return {name: getattr(thing, name) for name in names}


def nodes(pyslurm: Any, _question: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    """All nodes, a row each in the order of NODE (2 RPCs)."""
    found = pyslurm.Nodes.load().values()
    return {"columns": NODE, "nodes": [[getattr(node, name) for name in NODE] for node in found]}


def partitions(pyslurm: Any, _question: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    """All partitions; pyslurm asks for the configuration with them (2 RPCs)."""
    return {"partitions": [fields(PARTITION, partition) for partition in pyslurm.Partitions.load().values()]}


def reservations(pyslurm: Any, _question: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    """All reservations; flags that pyslurm has no name for make it raise, and then none is known (1 RPC)."""
    rows = []
    for reservation in pyslurm.Reservations.load().values():
        row = fields(RESERVATION, reservation)
        try:
            held = reservation.flags
            row["flags"] = [flag.name for flag in type(held) if flag in held]
        except STALE:
            row["flags"] = []
        row["again"] = reservation.reoccurrence.name
        rows.append(row)
    return {"reservations": rows}


def config(pyslurm: Any, _question: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    """What glaunch looks at in the configuration, under Slurm's own names (1 RPC)."""
    found = pyslurm.slurmctld.Config.load()
    return {"config": {name: getattr(found, attribute) for name, attribute in CONFIG.items()}}


def cancel(pyslurm: Any, question: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    """Cancel one job (1 RPC). One that is over or unknown is no error."""
    pyslurm.Job(question["job"]).cancel()
    return {}


def submit(pyslurm: Any, question: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    """Submit a script with the fields of a JobSubmitDescription (1 RPC). SLURM_* of this process would go into the job beside its own."""
    for name in [name for name in os.environ if name.startswith("SLURM_")]:
        del os.environ[name]
    return {"job_id": pyslurm.JobSubmitDescription(**question["fields"]).submit()}


QUESTIONS = {
    "nodes": nodes,
    "partitions": partitions,
    "reservations": reservations,
    "config": config,
    "cancel": cancel,
    "submit": submit,
}


def answer(pyslurm: Any, question: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    """The answer to one question, as it goes out."""
    try:
        return {"schema": SCHEMA, **QUESTIONS[question["ask"]](pyslurm, question)}
    except pyslurm.RPCError as refused:
        number = refused.errno if isinstance(refused.errno, int) else -1
        return {"failed": "said no", "errno": number, "words": str(refused.msg or refused)}
    except STALE as stumbled:
        return {"failed": "unreadable", "errno": 0, "words": f"{type(stumbled).__name__}: {stumbled}"}


def main() -> None:
    """Answer until there are no more questions."""
    # what anybody prints goes to stderr: stdout is ours alone
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="surrogateescape")
    os.dup2(2, 1)
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]

    def say(what: dict[str, Any]) -> None:
        out.write(json.dumps(what) + "\n")
        out.flush()

    try:
        import pyslurm  # type: ignore[import-not-found]
    except ImportError as missing:
        for _ in sys.stdin:
            say({"failed": "no pyslurm", "errno": 0, "words": str(missing)})
        return
    for line in sys.stdin:
        say(answer(pyslurm, json.loads(line)))


if __name__ == "__main__":
    main()
