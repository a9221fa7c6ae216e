"""The options of a launch, shared by `run` and `plan`, and how a line of words becomes a Request."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from glaunch.commands.words import OneOf, Whole
from glaunch.errors import UsageError
from glaunch.request import FIELDS, OF_THE_JOB, Request, apart, asks, exporting, read_words, split_components, with_option
from glaunch.schema import KEYS
from glaunch.talk import talk

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("-n", "--ntasks", type=Whole(1), metavar="N", help="Ranks: one per GPU unless told otherwise."),
    click.option("-N", "--nodes", type=Whole(1), metavar="N", help="Nodes: alone, all their GPUs."),
    click.option("--ntasks-per-node", type=Whole(1), metavar="N", help="Ranks on each node."),
    click.option("--gpus-per-node", metavar="[TYPE:]N", help="GPUs of each node."),
    click.option("-c", "--cpus-per-task", type=Whole(1), metavar="N", help="Cores of each rank."),
    click.option("--mem", metavar="SIZE", help="Memory of each node."),
    click.option("-p", "--partition", metavar="NAME", help="Partition; without it the one with GPUs."),
    click.option("-M", "--clusters", metavar="NAME", help="On this cluster of the site, by its name (needs accounting)."),
    click.option("-A", "--account", metavar="NAME", help="Account."),
    click.option("-q", "--qos", metavar="NAME", help="Quality of service."),
    click.option("-t", "--time", metavar="TIME", help="Time limit, as sbatch takes it: 90, 2:00:00, 1-12."),
    click.option("-J", "--job-name", "--name", "name", metavar="NAME", help="The job's name; without it the script's."),
    click.option("-C", "--constraint", metavar="LIST", help="Features that the nodes must have."),
    click.option("-x", "--exclude", metavar="NODES", help="Never on these nodes."),
    click.option("-w", "--nodelist", metavar="NODES", help="On these nodes."),
    click.option("--reservation", metavar="NAME", help="In this reservation."),
    click.option("-d", "--dependency", metavar="LIST", help="After other jobs, by id or name: afterok:prep."),
    click.option("-a", "--array", metavar="INDEXES", help="As a job array: 0-9%4."),
    click.option("--exclusive", is_flag=True, help="Share the nodes with nobody."),
    click.option("--requeue", is_flag=True, help="Let Slurm run the job again after a node failure; such a job is not pinned."),
    click.option("--max-requeues", type=Whole(1), metavar="N", help="--requeue, and end the job at the requeue after the Nth."),
    click.option(
        "--place",
        type=OneOf(KEYS["placement.mode"].choices),
        help="auto: ask for the best nodes if they are free now; pin: insist that they are asked for; prefer: them or as good ones; "
        "order: Slurm picks, glaunch orders.",
    ),
    click.option(
        "--launcher",
        type=OneOf(KEYS["launch.form"].choices),
        help="What starts the ranks: srun (a task each), torchrun or accelerate (one a node), mpi (one MPI job), exec (the program itself: "
        "it runs once).",
    ),
    click.option("--launcher-option", multiple=True, metavar="WORD", help="One more option for the launcher itself (repeatable)."),
    click.option("--max-restarts", type=Whole(0), metavar="N", help="torchrun starts failed ranks again, so often."),
    click.option("--wait-for-leaves", metavar="N[@TIME]", help="Let Slurm wait for nodes on at most N leaf switches (its --switches)."),
    click.option(
        "--objective",
        type=OneOf(KEYS["placement.objective"].choices),
        help="What makes nodes good: hops (near each other, pair by pair), ring (neighbours in a ring), spread (fewest pods, then leaves).",
    ),
    click.option("--tp", type=Whole(1), metavar="N", help="Tensor-parallel ranks: kept in one node, else in one leaf."),
    click.option("--pp", type=Whole(1), metavar="N", help="Pipeline stages: the ranks of each are kept in one pod."),
    click.option("--dp", type=Whole(1), metavar="N", help="Data-parallel ranks; tp × dp × pp are all ranks."),
    click.option("--ep", type=Whole(1), metavar="N", help="Expert-parallel ranks, neighbours among the data-parallel ones."),
    click.option("--segment", type=Whole(1), metavar="N", help="Keep groups of N nodes in one pod each."),
    click.option(
        "--on-bad-placement",
        type=OneOf(KEYS["placement.on_bad"].choices),
        help="What the job does in more pods than its size needs: go on, fail, or go back to the queue once.",
    ),
    click.option("--module", multiple=True, metavar="NAME", help="Load this module in the job, before the ranks (repeatable)."),
    click.option("--setup", multiple=True, metavar="LINE", help="Run this line of bash in the job, before the ranks (repeatable)."),
    click.option("--container", metavar="IMAGE", help="Start the ranks in this container: a file, or an image of a registry."),
    click.option("--container-mounts", multiple=True, metavar="SRC[:DST[:ro]]", help="Show this folder in it (repeatable, or commas)."),
    click.option("--container-workdir", metavar="FOLDER", help="Start there inside it; without it where you are now."),
    click.option("--container-env", multiple=True, metavar="NAMES", help="Variables that keep your value where the image has its own."),
    click.option("--container-runtime", type=OneOf(KEYS["container.runtime"].choices), help="Which runtime; auto: what nodes have."),
    click.option("--env", multiple=True, metavar="NAME=VALUE", help="Set a variable for the ranks (repeatable)."),
    click.option(
        "--export",
        metavar="ALL|NONE|NAMES",
        help="Which variables of your environment the job gets: all (without a word), none, or NAME,NAME.",
    ),
    click.option(
        "--sbatch",
        multiple=True,
        metavar="KEY[=VALUE]",
        help="Any other option of sbatch (repeatable); before the script most also go by their own names: --mail-type=END.",
    ),
    click.option("--mixed", is_flag=True, help="Nodes with different GPUs in one job, where too few of one kind are free."),
    click.option("--force", is_flag=True, help="Submit what can never run all the same."),
    click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout."),
    click.option("-v", "--verbose", is_flag=True, help="Say more."),
)

SBATCH_VALUES = MappingProxyType(
    {"licenses": "-L", "begin": "-b"}
    | dict.fromkeys(("comment", "mail-type", "mail-user", "signal", "deadline", "time-min", "wckey", "priority", "network", "hint"), "")
    | dict.fromkeys(("gres", "mem-per-cpu", "mem-per-gpu", "cpus-per-gpu", "gpu-bind", "tmp", "prefer", "switches", "profile"), "")
    | dict.fromkeys(("core-spec", "thread-spec", "delay-boot", "acctg-freq", "kill-on-invalid-dep", "bb", "extra"), "")
)
"""Options of sbatch that may stand before the script by their own names, beside `--sbatch KEY=VALUE`; a short name or ""."""
SBATCH_SWITCHES = MappingProxyType(
    {"hold": "-H", "contiguous": "", "spread-job": "", "overcommit": "-O", "reboot": "", "use-min-nodes": ""}
)


def _sbatchs_own() -> Iterator[Callable[[Any], Any]]:
    for names, flag in ((SBATCH_VALUES, False), (SBATCH_SWITCHES, True)):
        for name, short in names.items():
            words = ([short] if short else []) + [f"--{name}", _parameter(name)]
            yield click.option(*words, is_flag=True, hidden=True) if flag else click.option(*words, hidden=True)


def _parameter(name: str) -> str:
    return f"sbatch_{name.replace('-', '_')}"


PASSED = (
    *("mem", "partition", "clusters", "account", "qos", "time", "name"),
    *("constraint", "exclude", "nodelist", "reservation", "dependency", "array"),
    *("tp", "pp", "dp", "ep", "segment", "wait_for_leaves"),
)
"""Options that are fields of a Request under the same name."""
OF_A_COMPONENT = frozenset(
    {"ntasks", "nodes", "ntasks_per_node", "gpus_per_node", "cpus_per_task", "exclusive", "mixed", "sbatch"}
    | {"mem", "partition", "account", "qos", "time", "constraint", "exclude", "nodelist", "reservation"}
    | {"tp", "pp", "dp", "ep", "segment", "wait_for_leaves"}
)
"""Options that each component of a heterogeneous job says for itself; the others are the whole job's."""


def launch_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a launch and its words."""
    for option in reversed((*OPTIONS, *_sbatchs_own())):
        function = option(function)
    words = click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGUMENTS]", shell_complete=_files)
    return words(function)


def _files(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """The shell's own completion of file names: a script is one."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


class LaunchCommand(click.Command):
    """A command whose line is read by `read_words` before click sees it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        takes_value, before = (
            {
                name: not parameter.is_flag
                for parameter in self.get_params(ctx)
                if isinstance(parameter, click.Option) and parameter.hidden == hidden
                for name in (*parameter.opts, *parameter.secondary_opts)
            }
            for hidden in (False, True)
        )
        if ctx.resilient_parsing:  # completion looks at half a line: nothing is refused, and nothing is said
            return super().parse_args(ctx, args)
        first, *others = split_components(args)
        words = read_words(first, takes_value, before)
        if words.late:
            script = words.command[0]
            talk(f"{' '.join(words.late)} went to {script}; for glaunch it must stand before {script} or right behind it")
        if words.slip[0]:
            talk(f"{words.slip[0]} and all behind it went to {words.command[0]}; for glaunch it is {words.slip[1]}")
        rest = super().parse_args(ctx, [*words.own, "--", *words.command])
        ctx.params["components"] = tuple(self._component(ctx, one, takes_value, before) for one in others)
        return rest

    def _component(
        self, ctx: click.Context, line: tuple[str, ...], takes_value: dict[str, bool], before: dict[str, bool]
    ) -> dict[str, Any]:
        """The options of a further component of a heterogeneous job, and its program. Raises UsageError for an option of the whole job."""
        words = read_words(line, takes_value, before)
        if not words.own or not words.command:
            lacks = "no program" if not words.command else f"no -n and no -N for {words.command[0]}"
            raise UsageError(
                f"':' begins another component of the job, and behind it there is {lacks}",
                hint="glaunch -N 2 train.py : -N 1 -p cpu ./server; a ':' for the program itself: glaunch -N 2 -- PROGRAM … : …",
            )
        component = click.Context(self, parent=ctx.parent, info_name=ctx.info_name)
        super().parse_args(component, [*words.own, "--", *words.command])
        for parameter in self.get_params(component):
            name = parameter.name or ""
            given = component.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
            if given and name not in OF_A_COMPONENT | {"words"} and not name.startswith("sbatch_"):  # of these `request_from` knows
                why = "for one component's ranks: env NAME=VALUE PROGRAM …" if name == "env" else "say it before the first ':'"
                raise UsageError(f"{parameter.opts[0]} behind a ':': it is the whole job's", hint=why)
        return component.params

    def get_usage(self, ctx: click.Context) -> str:
        return f"Usage: {ctx.command_path} [OPTIONS] SCRIPT [ARGUMENTS]  or  {ctx.command_path} SCRIPT [OPTIONS] [--] [ARGUMENTS]"


def options_of(params: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Options that are settings: key → (value, the option), so that a site's veto and its words hold for them too."""
    named = {
        "launch.form": "launcher",
        "launch.options": "launcher_option",
        "launch.max_restarts": "max_restarts",
        "container.image": "container",
        "container.workdir": "container_workdir",
        "container.runtime": "container_runtime",
        "placement.mode": "place",
        "placement.objective": "objective",
        "placement.on_bad": "on_bad_placement",
    }
    return {key: (params[name], f"--{name.replace('_', '-')}") for key, name in named.items() if params[name] not in {None, ()}}


def request_from(params: dict[str, Any]) -> Request:
    """The options as they came from click → the Request. Raises UsageError for a malformed --env or --sbatch, or no script."""
    if not params["words"]:
        raise UsageError("no script and no command on the line", hint="glaunch train.py -n 64")
    request = Request(
        command=tuple(params["words"]),
        tasks=params["ntasks"],
        nodes=params["nodes"],
        tasks_per_node=params["ntasks_per_node"],
        gpus_per_node=params["gpus_per_node"],
        cpus_per_task=params["cpus_per_task"],
        env=tuple(_variable(word) for word in params["env"]),
        modules=_listed(params["module"]),
        setup=tuple(line for line in params["setup"] if line.strip()),
        container_mounts=_listed(params["container_mounts"]),
        container_env=_listed(params["container_env"]),
        exclusive=params["exclusive"],
        requeue=params["requeue"] or params["max_requeues"] is not None,
        max_requeues=params["max_requeues"],
        force=params["force"],
        mixed=params["mixed"],
        **{name: params[name] for name in PASSED},
    )
    components = tuple(request_from(one) for one in params.get("components", ()))
    for name, _ in (option for component in components for option in component.sbatch):
        if name in OF_THE_JOB:
            raise UsageError(f"--{name} behind a ':': it is the whole job's", hint="say it before the first ':'")
    request = replace(request, components=components)
    if params["export"] is not None:
        request = exporting(request, params["export"])
    own = [(name, params[_parameter(name)]) for name in SBATCH_VALUES if params[_parameter(name)] is not None]
    switches = [(name, None) for name in SBATCH_SWITCHES if params[_parameter(name)]]
    for name, value in (part for said in (*map(_option, params["sbatch"]), *own, *switches) for part in apart(*said)):
        if name in FIELDS and asks(request, name):
            raise UsageError(
                f"--sbatch {name}: this is said twice on the line", hint="say it once: glaunch run --help shows its own option"
            )
        request = with_option(request, name, value)
    return request


def _listed(words: tuple[str, ...]) -> tuple[str, ...]:
    """An option that may be repeated and may hold a list with commas."""
    return tuple(part for word in words for part in word.split(",") if part)


def _variable(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise UsageError(f"--env {word!r} is no NAME=VALUE", hint="--env NCCL_DEBUG=INFO")
    if "\0" in value:
        raise UsageError(f"--env {name}: a variable cannot hold a NUL character")
    return name, value


def _option(word: str) -> tuple[str, str | None]:
    name, equals, value = word.partition("=")
    name = name.lstrip("-")
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise UsageError(f"--sbatch {word!r} is no long option of sbatch", hint="--sbatch licenses=matlab:1, --sbatch hold")
    return name, value if equals else None
