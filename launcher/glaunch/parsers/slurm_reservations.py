"""`scontrol -a -o show reservation` as Reservations."""

from glaunch.cluster import Reservation
from glaunch.errors import ParseError, UsageError
from glaunch.hostlist import expand
from glaunch.parsers.slurm_fields import fields, listed, moment_s, text_of

COMMAND = "scontrol show reservation"

_KEYS = ("ReservationName", "StartTime", "EndTime", "Nodes", "Users", "Groups", "Accounts", "Flags", "PartitionName", "AllowedPartitions")


def parse_reservations(text: str) -> tuple[Reservation, ...]:
    """The reservations, in Slurm's own order; none for "No reservations in the system".

    What stands behind ` Comment=` is free text and not looked at, lines after it neither.
    Raises ParseError (`scontrol show reservation:LINE`). **Source:** scontrol(1), "show reservation"; seen with Slurm 21.08 to 26.05.
    """
    reservations: dict[str, Reservation] = {}
    open_text = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("ReservationName="):
            line, comment, _ = line.partition(" Comment=")
            open_text = bool(comment)
            reservation = _reservation(line, f"{COMMAND}:{number}")
            reservations.setdefault(reservation.name, reservation)
        elif line.strip() and not open_text and not line.startswith(("No reservations in the system", "CLUSTER: ")):
            raise ParseError(f"{COMMAND}:{number}", line, "ReservationName=…")
    return tuple(reservations.values())


def _reservation(line: str, where: str) -> Reservation:
    found = fields(line, _KEYS)
    start_s, end_s = moment_s(found.get("StartTime", ""), where), moment_s(found.get("EndTime", ""), where)
    if start_s is None or end_s is None:
        raise ParseError(where, line, "StartTime= and EndTime=")
    try:
        nodes = expand(text_of(found.get("Nodes", "")))
    except UsageError as wrong:
        raise ParseError(where, found["Nodes"], "a list of nodes in Nodes=") from wrong
    return Reservation(
        name=found["ReservationName"],
        nodes=nodes,
        start_s=start_s,
        end_s=end_s,
        users=listed(found.get("Users", "")),
        accounts=listed(found.get("Accounts", "")),
        flags=listed(found.get("Flags", "")),
        partition=text_of(found.get("PartitionName") or found.get("AllowedPartitions", "")),
        groups=listed(found.get("Groups", "")),
    )
