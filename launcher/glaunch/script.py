"""A plan as text: the batch script, its node files and its tables. Pure: the same plan gives the same bytes.

What runs on the nodes is not written here but copied as it is (`templates/node/*.sh`); the template only calls it with the
plan's numbers. The job's folder then holds everything that a run needs, and `sbatch FOLDER/job.sbatch` runs it again.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glaunch.errors import UsageError
from glaunch.job_array import parse_array
from glaunch.plan import Container, Plan
from glaunch.schema import LAUNCH_FORMS

if TYPE_CHECKING:
    from jinja2 import Environment

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SHELLS_OWN = frozenset({"IFS", "PPID", "UID", "EUID", "SHELLOPTS", "BASHOPTS", "BASH_VERSINFO", "OPTIND", "OPTARG"})
"""bash ends a script that sets most of them. **Source:** bash(1), Shell Variables; POSIX XCU 2.5.3."""
_SIGNALS = ("HUP", "USR1", "USR2")
"""Passed on to the program when they reach the batch shell alone: without a trap they would end it, and the job."""


@dataclass(frozen=True, slots=True)
class Script:
    """All files of a submission, path below the job's folder → text, in the order in which they are to be written (job.sbatch last)."""

    texts: tuple[tuple[str, str], ...]

    def __getitem__(self, path: str) -> str:
        return dict(self.texts)[path]


@dataclass(frozen=True, slots=True)
class Gathering:
    """How a run's logs come home, from the settings `gather.*` and `logs.*`."""

    before_limit_s: int
    """So long before the time limit the logs are gathered while the ranks still run (a quarter of what is left, if less); 0: not."""
    timeout_s: int
    """At most so long the step at the end may take."""
    cap_bytes: int
    """At most so much log a node gives."""
    node_dir: str
    """Node-local place of $GLAUNCH_LOG_DIR: a folder of mode 0700 is made in it, and a stranger's is refused."""


def render(plan: Plan, templates: Mapping[str, str], *, version: str, gathering: Gathering) -> Script:
    """The texts of a plan.

    `templates`: path below templates/ → text (`job.sbatch.j2`, `parts/…`, `node/*.sh`). `version`: of glaunch, for the comment.

    The script takes one argument: the submission's id (glaunch submits so: the guard against running twice acts), or `here`
    (`sh job.sbatch here` inside an allocation: the plan's counts hold, not those of the allocation), or none (by hand).

    Raises UsageError for a value that a script cannot carry; the message names the option or variable.
    """
    _check(plan, gathering)
    layout = plan.layout
    text = (
        _environment(templates)
        .get_template("job.sbatch.j2")
        .render(
            version=version,
            name=plan.name,
            folder=plan.folder,
            script_path=f"{plan.folder}/job.sbatch",
            submission_id=plan.submission_id,
            work_dir=plan.launch.work_dir,
            components=plan.all_components,
            several=bool(plan.components),
            shapes=tuple(_shape(one) for one in plan.all_components),
            tasks=plan.tasks,
            nodes=plan.nodes,
            per_node=layout.tasks_per_node,
            last_node=layout.last_node_tasks,
            leaf_group=plan.groups.leaf,
            pod_group=plan.groups.pod,
            planned_pods=plan.placement.cost.pods if plan.placement and not plan.components else 0,
            planned_leaves=plan.placement.cost.leaves if plan.placement and not plan.components else 0,
            fewest_pods=plan.fewest_pods,
            on_bad=plan.on_bad,
            max_requeues=plan.request.max_requeues or 0,
            variables=plan.environment.variables,
            kept=plan.environment.kept,
            unset=plan.environment.unset,
            carriage_return=any("\r" in variable.value for variable in plan.environment.variables),
            signals=_signals(plan),
            launch=plan.launch,
            order="planned" if plan.order else "slurm",
            before_limit_s=gathering.before_limit_s,
            gather_s=gathering.timeout_s,
            cap_bytes=gathering.cap_bytes,
            log_root=gathering.node_dir,
            start_s=60,
        )
    )
    order = "".join(f"{row.node}\t{row.position}\t{row.leaf}\t{row.pod}\n" for row in plan.order)
    switches = "".join("\t".join(path) + "\n" for path in plan.paths)
    tables = (("order.tsv", order), ("switches.tsv", switches))
    return Script((*_node_files(plan, templates), *_commands(plan), *tables, ("job.sbatch", text)))


def quote(text: str) -> str:
    """One word for a POSIX shell, whatever is in it but NUL. **Source:** POSIX XCU 2.2.2."""
    return "'" + text.replace("'", "'\"'\"'") + "'"


def _shape(plan: Plan) -> tuple[int, int, int, int, int]:
    """Of a component: ranks, nodes, ranks a node, nodes that stay together in one leaf, in one pod."""
    layout = plan.layout
    return layout.tasks, layout.nodes, layout.tasks_per_node, plan.groups.leaf, plan.groups.pod


def _node_files(plan: Plan, templates: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What runs on the nodes, as it is. Of the launch forms only this one's, under a name that all of them have."""
    others = {f"node/form-{name}.sh" for name in LAUNCH_FORMS} | (set() if plan.components else {"node/components.sh"})
    files = {path: body for path, body in templates.items() if path.startswith("node/") and path.endswith(".sh") and path not in others}
    files["node/form.sh"] = templates[f"node/form-{plan.launch.form}.sh"]
    return tuple(sorted(files.items()))


def _commands(plan: Plan) -> tuple[tuple[str, str], ...]:
    """The program as a file that task.sh reads (of a heterogeneous job each component's), and what starts a node's ranks as one for
    agent.sh.

    Nobody in between sees the words: srun would take a lone `:` for the start of another job, torchrun an option for its own.
    """
    what = "What runs, once" if plan.launch.form == "exec" else "What every rank runs"
    programs = []
    for number, one in enumerate(plan.all_components):
        path, whose = (f"command-{number}.sh", f" of component {number}") if plan.components else ("command.sh", "")
        inside = one.launch.container.work_dir if one.launch.container else one.launch.work_dir
        comment = f"# {what}{whose}, word by word, and where.\n"
        programs.append((path, f"{comment}gl_work_dir={_shell(inside)}\n{_words(one.launch.argv)}{_indexes(plan)}"))
    starter = f"# What starts the ranks; node/form.sh adds their places.\n{_words(plan.launch.starter)}"
    container = (("container.sh", _container(plan, plan.launch.container)),) if plan.launch.container else ()
    return (*container, *programs, ("starter.sh", starter))


def _container(plan: Plan, container: Container) -> str:
    """The container as a file that batch.sh and node/container.sh read."""
    for what, path in (("job folder", plan.folder), ("working folder", plan.launch.work_dir), ("--container-workdir", container.work_dir)):
        if re.search(r"[\s:,]", path) or not path.startswith("/"):
            raise UsageError(f"{what} {path!r}: a container takes no path with a blank, a colon or a comma", hint="use another folder")
    for word in container.options:
        if re.search(r"[\s*?\[]", word) or not word:
            raise UsageError(f"container.options: {word!r} has a blank or a pattern in it", hint="one word each: [--bind=/scratch]")
    values = {
        "gl_named": container.named,
        "gl_runtime": container.runtime,
        "gl_file": container.file,
        "gl_pyxis": container.pyxis,
        "gl_pull": container.apptainer,
        "gl_mounts": ",".join(container.mounts),
        "gl_inside": container.work_dir,
        "gl_names": " ".join((*container.variables, "MASTER_ADDR", "MASTER_PORT", "GLAUNCH_LOG_DIR")),
        "gl_options": " ".join(container.options),
        "gl_place": container.node_dir,
    }
    lines = "".join(f"{name}={_shell(value)}\n" for name, value in values.items())
    folders = "".join(f"{path}:{path}," for path in dict.fromkeys((plan.launch.work_dir, plan.folder)))
    return (
        f"# The container that every rank starts in. Of an image the names in gl_names keep the job's value.\n{lines}"
        f"gl_import_s={_number(container.import_s)}\n"
        f"shown_folders() {{ printf '%s' {_shell(folders)}\"$GLAUNCH_LOG_DIR:$GLAUNCH_LOG_DIR${{gl_mounts:+,$gl_mounts}}\"; }}\n"
    )


def _words(argv: tuple[str, ...]) -> str:
    return "set --" + "".join(f" \\\n    {_shell(word)}" for word in argv) + "\n"


def _indexes(plan: Plan) -> str:
    """Of an array that is several submissions: the program sees the index, and the array, that were asked for; glaunch's own steps and
    Slurm's commands keep Slurm's."""
    if not plan.parts or not plan.request.array:
        return ""
    array = parse_array(plan.request.array)
    whole = {"MIN": array.lowest, "MAX": array.highest, "COUNT": array.count, "STEP": array.step}
    lines = [
        "# One of several submissions of a larger array: the program sees the index, and the whole array, that were asked for.",
        "# Slurm's own index stands in the attempt's name, JOB.INDEX.RESTART: a launcher of ranks reads this file before they do.",
        'if [ -n "${SLURM_ARRAY_TASK_ID-}" ] && [ -n "${gl_attempt-}" ]; then',
        "    gl_index=${gl_attempt##*/}; gl_index=${gl_index#*.}; gl_index=${gl_index%%.*}",
        f"    export SLURM_ARRAY_TASK_ID=$((gl_index + {plan.offset}))",
        f"    export {' '.join(f'SLURM_ARRAY_TASK_{name}={value}' for name, value in whole.items())}",
        "fi",
    ]
    return "".join(f"{line}\n" for line in lines)


def _check(plan: Plan, gathering: Gathering) -> None:
    if not re.fullmatch(r"[A-Za-z0-9._-]+", plan.submission_id):
        raise UsageError(f"submission id {plan.submission_id!r}: letters, digits, '.', '_' and '-' only")
    for what, path in (("job folder", plan.folder), ("logs.node_dir", gathering.node_dir)):
        if not path.startswith("/") or _CONTROL.search(path):
            raise UsageError(f"{what} {path!r} must be an absolute path without control characters", hint="name another folder (rundir)")
        if "\\" in path:
            raise UsageError(
                f"{what} {path!r}: a backslash in a path switches off Slurm's file patterns", hint="name another folder (rundir)"
            )
    if not all(one.launch.argv for one in plan.all_components):
        raise UsageError("nothing to run: the plan has no program")
    for name in (name for path in plan.paths for name in path):
        if re.search(r"[\t\n]", name):
            raise UsageError(f"switch {name!r}: a name with a tab or a newline fits in no table")
    for row in plan.order:
        if re.search(r"[\t\n]", row.node + row.leaf + row.pod):
            raise UsageError(f"node {row.node!r} (leaf {row.leaf!r}, pod {row.pod!r}): a name with a tab or a newline fits in no table")


def _signals(plan: Plan) -> tuple[str, ...]:
    """Signals to pass on: the usual ones, and the user's own `--signal=B:SIG@TIME`. **Source:** sbatch(1), --signal."""
    more: tuple[str, ...] = ()
    for option in plan.directives:
        match = re.fullmatch(r"[RB]*:?(?:SIG)?(\w+)(?:@\d+)?", option.value or "", re.IGNORECASE)
        if option.name == "signal" and match:
            more += (match[1].upper(),)
    return _SIGNALS + tuple(name for name in more if name not in {*_SIGNALS, "TERM", "INT", "KILL", "STOP", "15", "2", "9", "19"})


def _shell(text: str) -> str:
    if "\0" in text:
        raise UsageError(f"{text!r}: a shell word cannot hold a NUL character")
    return quote(text)


def _shell_word(text: str) -> str:
    """As `_shell`, for job.sbatch itself: sbatch refuses a file with a carriage return, so that comes from the variable `gl_cr`."""
    return _shell(text).replace("\r", "'\"$gl_cr\"'")


def _code(line: str) -> str:
    """A line of the user's own shell code, as it is: nothing is quoted, since it is code."""
    if _CONTROL.search(line.replace("\t", " ")):
        raise UsageError(f"setup line {line!r}: a line of a script holds no control characters", hint="one line each")
    if line == "gl_end":
        raise UsageError(f"setup line {line!r}: that word ends each line of yours in the script", hint="put a blank before it")
    return line


def _sbatch(value: str, name: str) -> str:
    """An #SBATCH value: double quotes, backslash and quote escaped, nothing expanded; a line's end cannot be written at all."""
    if _CONTROL.search(value):
        raise UsageError(f"--{name}={value!r}: an #SBATCH line cannot hold control characters", hint=f"give --{name} a value of one line")
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _comment(text: str) -> str:
    return _CONTROL.sub(" ", " ".join(text.split()))


def _named(pattern: str, what: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise UsageError(f"{text!r} is no name of {what}")
        return text

    return check


def _variable(name: str) -> str:
    """A name that job.sbatch can export: the shells' own would end it or change how it reads, and gl_ is the script's."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise UsageError(f"{name!r} is no name of an environment variable")
    if name in _SHELLS_OWN or name.startswith("gl_"):
        raise UsageError(
            f"{name}: this name belongs to the job's own shell", hint=f"set it for the program alone: … env {name}=VALUE PROGRAM"
        )
    return name


def _number(value: int) -> str:
    return str(int(value))


def _environment(templates: Mapping[str, str]) -> "Environment":
    from jinja2 import DictLoader, Environment, StrictUndefined

    environment = Environment(  # noqa: S701 (the text is a shell script: every value goes through a filter of ours, and a test holds that)
        loader=DictLoader(dict(templates)), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters.update(
        q=_shell_word,
        sbatch=_sbatch,
        comment=_comment,
        code=_code,
        number=_number,
        option=_named(r"[a-z][a-z0-9-]*", "an sbatch option"),
        variable=_variable,
        signal=_named(r"[A-Z0-9+]+", "a signal"),
    )
    return environment
