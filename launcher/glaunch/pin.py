"""A pin is a loan: when a job that asked for exactly its planned nodes gives them back."""

from typing import Protocol

from glaunch.job import Job

LOOKS_S = (3.0, 8.0, 20.0, 30.0)
"""When a pinned job that still waits is looked at; `Priority` often clears by itself within one backfill pass (30 s)."""
FINAL_REASONS = ("Resources", "ReqNodeNotAvail")
"""Reasons that waiting does not cure: another job holds a pinned node, or the node is gone. **Source:** tried on 22.05.8, 24.11.5 and
26.05.5, under topology/tree and topology/block, with a list of exactly the nodes and with spares."""


class Unpins(Protocol):
    """The part of the gateway that gives a pin back."""

    def unpin(self, job_id: str) -> str:
        """`lifted`, or why not: `running`, `over`, `unknown`, `later`."""


def pin_verdict(job: Job | None, waited_s: float, patience_s: float) -> str:
    """What to do about a pinned job: `settled` (it started, ended, or is free), `lift`, or `wait`."""
    if job is None or job.over or job.state != "PENDING" or not job.required_nodes:
        return "settled"
    if job.reason.startswith(FINAL_REASONS) or waited_s >= patience_s:
        return "lift"
    return "wait"


def give_back(slurm: Unpins, job_id: str, job: Job | None, waited_s: float, patience_s: float) -> str:
    """Lift the pin if that is due, `job` being what Slurm says now; what became of it: `held`, `lifted` or `settled`.

    Raises what the gateway raises; the pin is then as it was.
    """
    verdict = pin_verdict(job, waited_s, patience_s)
    if verdict != "lift":
        return "held" if verdict == "wait" else verdict
    return {"lifted": "lifted", "later": "held"}.get(slurm.unpin(job_id), "settled")
