"""Slurm's states and reasons in plain words."""

from glaunch.job import UNTOLD, Job
from glaunch.units import format_span

REASONS = {
    "None": "Slurm has not looked at it yet",
    "Resources": "waits for nodes or GPUs that are in use",
    "Priority": "other jobs come first",
    "Dependency": "waits for another job",
    "DependencyNeverSatisfied": "waits for a job that failed: it will never start",
    "BeginTime": "waits for its begin time",
    "JobHeldUser": "held by its owner: scontrol release JOB",
    "JobHeldAdmin": "held by an administrator",
    "AssocGrpCpuLimit": "the account uses all the cores that it may",
    "AssocMaxJobsLimit": "the account runs as many jobs as it may",
    "QOSMaxNodePerJobLimit": "more nodes than this QOS allows in one job",
    "QOSMaxWallDurationPerJobLimit": "a longer time limit than this QOS allows",
    "QOSMaxJobsPerUserLimit": "you run as many jobs as this QOS allows",
    "PartitionNodeLimit": "more nodes than the partition allows or has",
    "PartitionTimeLimit": "a longer time limit than the partition allows",
    "PartitionConfig": "asks for more than its partition allows",
    "PartitionDown": "the partition takes no jobs to start now",
    "PartitionInactive": "the partition is closed",
    "ReqNodeNotAvail": "a node that it needs is drained, down or reserved",
    "Reservation": "waits for its reservation",
    "Licenses": "waits for a licence",
    "JobArrayTaskLimit": "the array runs as many tasks at once as it may",
    "Cleaning": "is being cleaned up before it runs again",
    "Nodes_required_for_job_are_DOWN": "waits for nodes that are down, drained or reserved",
    "NodeDown": "a node that it needs is down",
    "No_suitable_topology_unit_found": "waits for one block, or one part of the network, with enough free nodes",
    "No_suitable_topology_unit_found_for_segment": "waits for blocks with room for its segments",
    "BadConstraints": "asks for features that no set of nodes has",
    "JobLaunchFailure": "could not be started on its first node",
    "NonZeroExitCode": "ended with an error",
    "TimeLimit": "reached its time limit",
    "InvalidAccount": "its account is not valid",
    "InvalidQOS": "its QOS is not valid",
}
"""**Source:** squeue(1), JOB REASON CODES; of topology, tried on 26.05.5."""

STATES = {
    "PENDING": "waits",
    "CONFIGURING": "nodes are being prepared",
    "RUNNING": "runs",
    "COMPLETING": "is ending",
    "COMPLETED": "is done",
    "CANCELLED": "was cancelled",
    "FAILED": "failed",
    "TIMEOUT": "reached its time limit and was stopped",
    "NODE_FAIL": "lost a node",
    "PREEMPTED": "gave way to another job",
    "OUT_OF_MEMORY": "ran out of memory",
    "BOOT_FAIL": "got a node that did not boot",
    "DEADLINE": "could not run before its deadline",
    "SUSPENDED": "is suspended",
    "REQUEUED": "is back in the queue",
    "REVOKED": "runs on a sibling cluster",
    "SPECIAL_EXIT": "waits, set aside after a failure",
    UNTOLD: "has left no end, and Slurm does not say whether it runs",
}


UNFORESEEN_S = 300 * 86400
"""An estimate beyond this says only that something has no time limit: Slurm counts with a year for it, and adds up several."""


def ended(code: int | None, job: Job | None) -> str:
    """How a job ended, from its own exit code and from what Slurm says of it (either may be unknown, or Slurm behind)."""
    if job is not None and (code is None or (job.over and job.state not in {"COMPLETED", "FAILED"})):
        return in_words(job)
    if code is None:
        return "over; Slurm has forgotten how"
    return "done" if code == 0 else f"ended with exit code {code}"


def estimate(job: Job, now_s: float) -> str:
    """When Slurm thinks that a job which waits will start, with what that is worth; "" where it does not say."""
    if job.state != "PENDING" or job.start_s is None or job.start_s <= now_s:
        return ""
    if job.start_s - now_s > UNFORESEEN_S:
        return "no start in sight: jobs without a time limit come first (Slurm's estimate)"
    return f"starts in about {format_span(job.start_s - now_s)} (Slurm's estimate; changes with the queue)"


def in_words(job: Job) -> str:
    """`waits: other jobs come first (Priority)`."""
    state = STATES.get(job.state, job.state.lower())
    if job.state != "PENDING" or not job.reason:
        return state
    # `ReqNodeNotAvail,_UnavailableNodes:n006`: the code ends at the first comma
    code = job.reason.split(",")[0]
    said = REASONS.get(code)
    if said is None:
        return f"{state} ({job.reason})"
    return f"{said} ({job.reason})" if said.startswith("waits ") else f"{state}: {said} ({job.reason})"
