"""Slurm's refusals and silences as errors with the next thing to type."""

import re
from collections.abc import Sequence
from textwrap import shorten

from glaunch.errors import ControllerSilent, SlurmError
from glaunch.gateways.process import Completed

_SILENT = (
    (
        r"[Mm]unge|Protocol authentication error|authentication credential",
        "munge, which proves to Slurm who you are, does not answer on this host",
        "try: munge -n | unmunge   (if that fails, tell your administrator, or use another login node)",
    ),
    (
        r"unrecognized key|Parsing error|Parse error|Unable to process configuration",
        "slurm.conf has a line that this Slurm cannot read",
        "its line is named above, or by: scontrol show config   (a newer Slurm's file? load that Slurm; else tell your administrator)",
    ),
    (
        r"getaddrinfo\(\) failed|Unable to resolve",
        "this host does not know the name of Slurm's controller (SlurmctldHost)",
        "is this a login node of the cluster? see the name: grep SlurmctldHost /etc/slurm/slurm.conf",
    ),
    (
        r"cannot stat file|[Cc]ould not establish a configuration source|resolve_ctls_from_dns_srv|fetch_config",
        "Slurm finds no slurm.conf here",
        "is this a login node of the cluster? else: export SLURM_CONF=/path/of/slurm.conf",
    ),
    (
        r"Problem talking to the database|slurm_persist_conn|slurmdbd",
        "Slurm's accounting database (slurmdbd) does not answer",
        "try: sacctmgr ping   (the jobs themselves do not need it)",
    ),
    (
        r"Unable to contact slurm controller|Socket timed out|Zero Bytes were transmitted|[Cc]onnection (?:refused|timed out)"
        r"|in standby mode|No route to host|Unable to establish control",
        "Slurm's controller does not answer",
        "try: scontrol ping",
    ),
)

_NO_CLUSTER = re.compile(r"invalid entry for")
"""What all commands say of a cluster that the database does not know, or where there is none. **Source:** tried on 22.05.8."""

_WHATEVER_THE_NODES = re.compile(
    r"unrecognized option|requires an argument|[Ii]nvalid --|Invalid time specification|[Ii]nvalid (?:partition|qos|account)"
)


def about_nodes(refusal: SlurmError) -> bool:
    """Whether the same job may be taken if other nodes, or none by name, are asked for."""
    return not _WHATEVER_THE_NODES.search(refusal.stderr)


_SAID_NO = (
    (r"unrecognized option|requires an argument|[Ii]nvalid --|Invalid time specification", "what sbatch takes: man sbatch, sbatch --help"),
    (r"[Ii]nvalid partition", "see them: sinfo -s"),
    (
        r"Requested node configuration is not available",
        "no node of the partition has this shape; see what there is: sinfo -N -o '%N %P %c %m %G %f'",
    ),
    (r"Node count specification invalid|More processors requested", "see how many there are: sinfo -s"),
    (r"account", "your accounts: sacctmgr show associations user=$USER format=account,partition,qos"),
    (
        r"[Ii]nvalid qos|QOS",
        "your QOS: sacctmgr show associations user=$USER format=account,partition,qos; their limits: sacctmgr show qos",
    ),
    (r"accounting/QOS policy|limit", "the limits: sacctmgr show qos, sinfo -o '%P %l'; what you have running: squeue --me"),
    (r"time limit", "the partitions' limits: sinfo -o '%P %l'"),
    (r"[Ii]nvalid node name", "see them: sinfo -N"),
    (r"[Ii]nvalid feature", "see them: sinfo -o '%N %f'"),
    (r"generic resource|gres", "see what nodes have: sinfo -o '%N %G'"),
    (r"reservation", "see them: scontrol show reservation"),
    (r"group not permitted|Access/permission denied", "this is for other users or groups: sinfo -s shows what you may use"),
    (r"dependency", "see the job it names: squeue --me -t all"),
    (r"parameter too long", "Slurm takes names and comments of at most 1,024 bytes"),
)


def refusal(done: Completed, doing: str, timeout_s: float) -> SlurmError:
    """The error for a Slurm command that failed. `doing` ends the sentence "Slurm refused …": `the job`, `to say which nodes there are`."""
    words = spoken(done)
    if _NO_CLUSTER.search(done.stderr):
        return SlurmError(
            f"Slurm refused {doing}: {words}",
            argv=done.argv,
            stderr=done.stderr,
            hint="clusters are known by the accounting database alone: sacctmgr show clusters format=cluster",
        )
    for pattern, what, hint in _SILENT:
        if re.search(pattern, done.stderr):
            return ControllerSilent(f"{what}: {_telling(words, pattern)}", argv=done.argv, stderr=done.stderr, hint=hint)
    if done.code is None:
        return ControllerSilent(
            f"{done.argv[0]} did not answer within {timeout_s:g} s ({shorten(' '.join(done.argv), 60, placeholder=' …')})",
            argv=done.argv,
            stderr=done.stderr,
            hint="try: scontrol ping",
        )
    hint = next((hint for pattern, hint in _SAID_NO if re.search(pattern, words)), "")
    return SlurmError(f"Slurm refused {doing}: {words}", argv=done.argv, stderr=done.stderr, hint=hint)


def _telling(words: str, pattern: str) -> str:
    """Of Slurm's many lines the one that shows it."""
    lines = [line for line in words.split("; ") if re.search(pattern, line)]
    line = next((line for line in lines if "fail" in line.lower()), lines[0] if lines else words)
    return re.sub(r": No error, attempt number -?\d+$", "", line)


def is_silence(done: Completed) -> bool:
    """True where the command says that it got no answer, whatever its exit code: `scontrol show topology` ends with 0 then (22.05)."""
    if done.code is not None and _NO_CLUSTER.search(done.stderr):
        return False
    return done.code is None or any(re.search(pattern, done.stderr) for pattern, _, _ in _SILENT)


def missing(argv: Sequence[str]) -> SlurmError:
    """The error for a Slurm command that is not on this host."""
    return SlurmError(
        f"no {argv[0]} on PATH: glaunch works through Slurm's own commands",
        argv=tuple(argv),
        hint="load your site's Slurm (module load slurm), or plan from a capture: glaunch --snapshot DIR plan …",
    )


def spoken(done: Completed) -> str:
    """Slurm's own words without the program's name before them, in one line."""
    lines = [
        re.sub(rf"^{re.escape(done.argv[0])}: (?:error: |fatal: )?(?:Batch job submission failed: )?", "", line).strip()
        for line in (done.stderr or done.stdout).splitlines()
    ]
    words = "; ".join(dict.fromkeys(line for line in lines if line))
    return words[:600] or f"{done.argv[0]} ended with code {done.code} and said nothing"
