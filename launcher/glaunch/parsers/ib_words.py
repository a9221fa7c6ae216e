"""What the InfiniBand tools have in common: how devices call themselves, how a link's width and speed are written.

**Source:** ibnetdiscover(8), iblinkinfo(8); descriptions as seen in dumps of real fabrics.
"""

import re

from glaunch.network import ENGINE, HCA, NOMINAL_GBPS, Device, guid, is_name

NOISE = re.compile(r'#|src/|ibwarn:|ibpanic:|iberror:|=~|Chassis \d|Non-Chassis Nodes|[^"]*[#$>]\s*(?:(?:sudo )?ib\w+.*)?$')
"""Lines between the records: what the tools say on stderr, and the banner and prompts of a terminal that was recorded."""

_MAKER = re.compile(r"Mellanox Technologies|InfiniHost|ConnectX|^MT\d+\b|^QLogic|^Intel Omni-Path|^Bridge$")
_HCA_WORD = re.compile(r"HCA-?\d+|mlx\d_\w+|ib[ps]?\d\w*|(?:hfi|qib|mthca|bnxt_re|irdma|cxi|roce)\S*\d\S*", re.IGNORECASE)
_LANE = re.compile(r"\d+(?:\.\d+)?")
_NOMINAL_OF_LANE = {2.5: 2.5, 5.0: 5.0, 10.0: 10.0, 10.3125: 10.0, 14.0625: 14.0, 25.78125: 25.0, 53.125: 50.0, 106.25: 100.0, 212.5: 200.0}


def host_and_hca(description: str) -> tuple[str, str]:
    """(host, adapter's word) of an adapter's description: `n001 HCA-2` is n001 and HCA-2, `n001` alone n001 and "".

    The host is "" where it cannot be known: the maker's words of an adapter that was never told a name, several words that do not end
    in an adapter's. Such an adapter needs a line in a map file.
    """
    words = description.split()
    if not words or _MAKER.search(description):
        return "", description.strip()
    hca = words[-1] if len(words) > 1 and _HCA_WORD.fullmatch(words[-1]) else ""
    host = words[:-1] if hca else words
    return (host[0], hca) if len(host) == 1 and is_name(host[0]) else ("", description.strip())


def adapter(port_guid: str, description: str, *, card: str = "", system: str = "", where: str) -> Device:
    """The device of one port of an adapter, or of the engine that a switch hides behind one."""
    if "Aggregation Node" in description:
        return Device(guid(port_guid), ENGINE, description.strip(), card=card, system=system, where=where)
    host, hca = host_and_hca(description)
    return Device(guid(port_guid), HCA, hca, host, card, system, where=where)


def rate_of_speed(lanes: int, speed: str) -> float:
    """Gbit/s of `4` lanes of `HDR`; 0 for a speed that is not known (`???`)."""
    return lanes * NOMINAL_GBPS.get(speed, 0.0)


def rate_of_lane(lanes: int, lane_gbps: str) -> float:
    """Gbit/s of so many lanes of `53.125` Gbit/s: the nominal ones, so that every tool gives the same figure for one link."""
    if not _LANE.fullmatch(lane_gbps):
        return 0.0
    return lanes * _NOMINAL_OF_LANE.get(float(lane_gbps), float(lane_gbps))
