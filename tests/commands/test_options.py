"""What a line says, as a Request."""

import click
import pytest

from glaunch.commands.options import LaunchCommand, launch_options, request_from
from glaunch.errors import UsageError
from glaunch.request import Request


def asked(line: str) -> Request:
    """The request that a launch line makes."""
    found: list[Request] = []

    @click.command(cls=LaunchCommand)
    @launch_options
    def launch(**params: object) -> None:
        found.append(request_from(dict(params)))

    launch.main(line.split(), standalone_mode=False)
    return found[0]


def test_sbatchs_options_may_stand_before_the_script_by_their_own_names() -> None:
    request = asked("-L matlab:1 --mail-type=END --comment=mine -H -n 8 train.py --comment=theirs")
    assert request.sbatch == (("licenses", "matlab:1"), ("comment", "mine"), ("mail-type", "END"), ("hold", None))
    assert request.command == ("train.py", "--comment=theirs")
    assert asked("--gres=gpu:h100:4,nvme:1 -N 2 train.py") == Request(
        ("train.py",), nodes=2, gpus_per_node="h100:4", sbatch=(("gres", "nvme:1"),)
    )
    with pytest.raises(UsageError, match="said twice"):
        asked("--gres=gpu:4 --gpus-per-node 8 -N 2 train.py")


def test_a_most_of_requeues_asks_for_requeues_and_a_cluster_is_named() -> None:
    request = asked("train.py -n 8 --max-requeues 3 -M red")
    assert (request.requeue, request.max_requeues, request.clusters) == (True, 3, "red")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (("--launcher", "torch"), "'torch' is none of srun, torchrun, mpi, accelerate, exec; did you mean torchrun?"),
        (("--place", "pinn"), "did you mean pin?"),
        (("--objective", "x"), "'x' is none of hops, ring, spread"),
        (("-n", "eight"), "'eight' is no whole number from 1"),
        (("-N", "2-4"), "'2-4' is no whole number from 1"),
        (("-n", "0"), "'0' is no whole number from 1"),
    ],
)
def test_a_value_that_cannot_be_meant_is_told_with_what_can(line: tuple[str, str], said: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        asked(" ".join([*line, "train.py"]))
    assert refused.value.message.endswith(said)
