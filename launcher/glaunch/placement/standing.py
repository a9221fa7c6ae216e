"""What a node's state means for a job that would start now."""

from functools import lru_cache
from types import MappingProxyType

FREE, PART, STARTABLE = "free", "part", "startable"
"""Nothing runs there; something runs there; nothing does, but it must be powered up first."""

_WHY = MappingProxyType(
    {
        "DRAIN": "drained",
        "FAIL": "failing",
        "MAINTENANCE": "in maintenance",
        "MAINT": "in maintenance",
        "RESERVED": "reserved",
        "PLANNED": "planned for other jobs",
        "COMPLETING": "completing",
        "NOT_RESPONDING": "not responding",
        "REBOOT": "rebooting",
        "REBOOT_REQUESTED": "rebooting",
        "REBOOT_ISSUED": "rebooting",
        "POWERING_UP": "powering up or down",
        "POWERING_DOWN": "powering up or down",
        "POWER_DOWN": "powering up or down",
        "POWER_UP": "powering up or down",
        "BLOCKED": "blocked",
        "INVALID_REG": "wrongly registered",
        "DYNAMIC_NORM": "dynamic",
        "DYNAMIC_FUTURE": "dynamic",
    }
)
_DOWN = MappingProxyType(
    {"DOWN": "down", "ERROR": "down", "FUTURE": "not there yet", "UNKNOWN": "in an unknown state", "HIDDEN": "not shown by Slurm"}
)


@lru_cache(maxsize=1024)
def standing(state: str, in_reservation: bool = False) -> tuple[str, str]:
    """(standing, why) of a state such as `IDLE+CLOUD`: FREE, PART or STARTABLE and ""; else "" and why the node is not free, in words.

    `in_reservation`: the job names the reservation that holds the node, so that RESERVED and MAINT do not keep it out.
    A flag that is not known keeps a node out: what is not understood never reads as free.
    **Source:** sinfo(1), NODE STATE CODES; scontrol(1), "show node".
    """
    base, *flags = state.split("+")
    # MAINTENANCE and RESERVED stand as the base state too (`State=MAINTENANCE+DRAIN`)
    if base in {"MAINTENANCE", "MAINT", "RESERVED", "PLANNED", "BLOCKED"}:
        base, flags = "IDLE", [base, *flags]
    if base in _DOWN:
        return "", _DOWN[base]
    ignored = {"CLOUD", "POWERED_DOWN", "POWER_SAVING", "PERFCTRS"} | ({"MAINTENANCE", "MAINT", "RESERVED"} if in_reservation else set())
    for flag in sorted(set(flags) - ignored, key=_rank):
        return "", _WHY.get(flag, f"in state {state}")
    if base == "IDLE":
        return (STARTABLE, "") if {"POWERED_DOWN", "POWER_SAVING"} & set(flags) else (FREE, "")
    if base == "MIXED":
        return PART, ""
    return "", "busy" if base in {"ALLOCATED", "ALLOC"} else f"in state {state}"


def _rank(flag: str) -> tuple[int, str]:
    order = tuple(_WHY)
    return (order.index(flag) if flag in order else len(order), flag)
