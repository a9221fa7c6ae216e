"""The environment that Slurm's commands are given: where the cluster is stays, what changes their output goes."""

from collections.abc import Mapping

from glaunch.errors import UsageError
from glaunch.inherited import NOT_HANDED_ON, around_a_new_job, with_functions

WHERE_THE_CLUSTER_IS = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_JWT", "SLURM_PROTOCOL_VERSION")
"""Kept in every call. SLURM_CLUSTERS is `--clusters`: with one name all calls go to that cluster."""

_DISPLAY = ("SQUEUE_", "SINFO_", "SACCT_", "SCONTROL_", "SCANCEL_", "SLURM_")


def cluster_of(environ: Mapping[str, str]) -> str:
    """The cluster that SLURM_CLUSTERS names; "" for the one of this host's slurm.conf. Raises UsageError where it names several."""
    clusters = environ.get("SLURM_CLUSTERS", "")
    if "," in clusters or clusters == "all":
        raise UsageError(f"{clusters!r} names several clusters; a launch goes to one", hint=f"-M {clusters.split(',')[0]}")
    return clusters


def reading_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """For sinfo, scontrol, squeue, sacct, scancel: no variable of the user's changes a format or filters rows.

    All SQUEUE_*, SINFO_*, SACCT_*, SCONTROL_*, SCANCEL_* and SLURM_* go (formats, filters, sorting, an outer job's variables), save those
    that say where the cluster is. Moments come as seconds since the epoch (SLURM_TIME_FORMAT=%s; scontrol, squeue and sacct of 22.05 do
    it), topology lines whole (SLURM_TOPO_LEN), messages untranslated.
    Raises UsageError where SLURM_CLUSTERS names several clusters: a plan is for one.
    **Source:** ENVIRONMENT VARIABLES of squeue(1), sinfo(1), scontrol(1), sacct(1).
    """
    cluster_of(environ)
    kept = {name: value for name, value in environ.items() if not name.startswith(_DISPLAY) or name in WHERE_THE_CLUSTER_IS}
    return {**kept, "LC_ALL": "C", "SLURM_TIME_FORMAT": "%s", "SLURM_TOPO_LEN": "16777216"}


def submitting_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """For sbatch, whose environment the job inherits: the user's own, less what would break the job or the submission.

    What `inherited` has read goes: a variable would beat the script, which names the cluster too, and SLURM_CLUSTERS would make each srun
    of the job ask the database. So do SBATCH_WAIT (sbatch would wait for the job's end, and its id
    with it), SLURM_HOSTFILE (every srun of the job would become `--distribution=arbitrary`) and other options of srun that the steps set.
    Inside an allocation all of the outer job's SLURM_* go: they describe that job, not the new one, and would bind the new one's ranks to
    the cores of a task of the old one. Exported functions go along (`with_functions`).
    **Source:** INPUT ENVIRONMENT VARIABLES of sbatch(1).
    """
    around = around_a_new_job(environ, WHERE_THE_CLUSTER_IS)
    return with_functions({name: value for name, value in around.items() if name not in NOT_HANDED_ON})
