"""Plans for tests of the script, the node files and the job's folder, by hand: nothing of placement or tuning is in them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from glaunch.placement.placement import OrderRow
from glaunch.plan import Launch, Option, Plan, RankLayout
from glaunch.request import Request
from glaunch.sbatch_options import batch_output, of_component
from glaunch.script import Gathering
from glaunch.tuning import Environment, Variable

GATHERING = Gathering(before_limit_s=60, timeout_s=10, cap_bytes=256 << 20, node_dir="/tmp")
"""What ships, as `site/defaults.yaml` has it."""
TEMPLATES = Path(__file__).resolve().parents[1] / "templates"


STARTERS = {
    "torchrun": ("/usr/bin/python3", "-m", "torch.distributed.run"),
    "accelerate": ("/usr/bin/python3", "-m", "accelerate.commands.launch"),
}


def load_templates() -> dict[str, str]:
    """All files of templates/ as render takes them."""
    return {str(path.relative_to(TEMPLATES)): path.read_text(encoding="utf-8") for path in sorted(TEMPLATES.rglob("*")) if path.is_file()}


def backwards(count: int = 16) -> tuple[OrderRow, ...]:
    """An order that Slurm would never choose by itself: the last node first."""
    return tuple(OrderRow(f"n{count - row:03d}", row, f"leaf{(count - row - 1) // 4 + 1}", "spine") for row in range(count))


def make_plan(
    folder: str,
    argv: Sequence[str],
    *,
    nodes: int = 2,
    per_node: int = 2,
    tasks: int | None = None,
    name: str = "try",
    time: str = "5",
    more: Sequence[Option] = (),
    variables: Sequence[Variable] = (),
    kept: Sequence[Variable] = (),
    unset: Sequence[Variable] = (),
    work_dir: str = "/",
    order: Sequence[OrderRow] | None = None,
    form: str = "srun",
    options: Sequence[str] = (),
    mpi: str = "auto",
    starter: Sequence[str] | None = None,
) -> Plan:
    """A whole plan; `more` are further #SBATCH options, `options` those of the launch form's own program."""
    ranks = nodes * per_node if tasks is None else tasks
    array = any(option.name == "array" for option in more)
    directives = (
        Option("job-name", name),
        Option("nodes", str(nodes), "8 GPUs a node" if per_node == 8 else ""),
        Option("ntasks", str(ranks)),
        Option("ntasks-per-node", str(per_node)),
        Option("time", time),
        Option("output", batch_output(folder, array=array), "what this script itself says"),
        *more,
    )
    return Plan(
        submission_id="sub-1",
        name=name,
        folder=folder,
        request=Request(tuple(argv)),
        partition="gpu",
        time_limit_s=300,
        time_limit_why="asked for",
        layout=RankLayout(ranks, nodes, per_node, per_node, "h100"),
        mode="order",
        mode_why="by hand",
        placement=None,
        best_possible=None,
        order=backwards() if order is None else tuple(order),
        directives=directives,
        arguments=(),
        environment=Environment(tuple(variables), tuple(kept), (), tuple(unset)),
        launch=Launch(
            form,
            tuple(argv),
            work_dir,
            starter=(*(STARTERS.get(form, ()) if starter is None else starter), *options),
            mpi=mpi if form == "mpi" else "",
        ),
        fabric_source="by hand",
        cluster_taken_at_s=0.0,
        warnings=(),
        notes=(),
    )


def joined(first: Plan, *others: Plan) -> Plan:
    """Plans as the components of one job."""
    slim = tuple(replace(one, order=(), directives=of_component(one.directives), environment=Environment((), (), ())) for one in others)
    return replace(first, components=slim)
