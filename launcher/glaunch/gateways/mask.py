"""Other names for people and machines in Slurm's texts: the same one everywhere, so that a masked cluster plans like the real one."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from itertools import count, product
from string import ascii_lowercase

KNOWN_PEOPLE = frozenset({"root", "slurm", "munge", "nobody", "ALL", "(null)", "N/A", "None", ""})
"""Names that say nothing about a site."""

_HOSTS = re.compile(
    r"(?:^|\s)(?:NodeName|NodeHostName|NodeAddr|BatchHost|AllocNode:Sid)=([\w.-]+)"
    r"|^(?:SlurmctldHost\S*|ControlMachine|ControlAddr|Backup\w*|Accounting\w*Host\w*|JobCompHost)\s*=\s*([\w.-]+)",
    re.M,
)
_PEOPLE = (
    ("user", re.compile(r"(?:^|\s)(?:UserId|Owner)=([^\s()]+)|\[([^\s\[\]@]+)@|^\w*User\s*=\s*([^\s()]+)", re.M)),
    ("user", re.compile(r"(?:^|\s)Users=(\S+)", re.M)),
    ("account", re.compile(r"(?:^|\s)(?:AllowAccounts|DenyAccounts|Accounts|Account)=(\S+)", re.M)),
    ("group", re.compile(r"(?:^|\s)(?:AllowGroups|Groups)=(\S+)|\sGroupId=([^\s()]+)", re.M)),
)
_ADDRESS = re.compile(r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7})(?![\w.:])")
_FREE = re.compile(r"(?<= )(Comment|Extra|Reason)=(.*?)(?= \[[^\s\[\]]+@[^\s\]]+\]|$| (?:Comment|Extra|Reason)=)", re.M)
_SYSTEM = re.compile(r"(?<= )OS=\S+.*?(?= RealMemory=)")
_PATH = re.compile(r"(= *)(/\S.*)$", re.M)
_SECRET = re.compile(r"^(\w*(?:Pass|AuthInfo|AuthAltParameters|MailDomain|MailProg)\w*\s*= ).*$", re.M)
_COLUMNS = {"User": "user", "DefaultAccount": "account", "Account": "account", "ParentName": "account"}
"""Of sacctmgr's tables (their fields as they are asked for, `format=`) those that hold a name."""
_NUMBER = r"(?:\d+|\[[\d,-]+\])"


class Mask:
    """Text → text with users (user1), accounts, groups, hosts (node001: numbers stay, so that lists fold as before) and addresses renamed.

    Names are learnt from the texts and tables that it is made with, and of the one who asked. Reasons, comments and extra texts are free
    and go as a whole; so do paths and what may hold a secret in the configuration. Partitions, QOS, features, reservations, switches and
    the cluster's name stay.
    """

    def __init__(
        self, texts: Iterable[str], *, tables: Iterable[tuple[str, Sequence[str]]] = (), user: str = "", groups: Iterable[str] = ()
    ) -> None:
        """`tables`: sacctmgr's, each with its fields."""
        known = tuple(texts)
        self._hosts = _host_rules(host for text in known for groups in _HOSTS.findall(text) for host in groups if host)
        cells = (cell for text, fields in tables for cell in _cells(text, fields))
        self._people = _people((*_named(known), ("user", user), *(("group", group) for group in groups), *cells))
        listed = "|".join(map(re.escape, sorted(self._people, key=len, reverse=True)))
        self._known = re.compile(rf"(?<![\w.-])(?:{listed})(?![\w.-])" if listed else "(?!)")
        self._addresses: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        text = _FREE.sub(r"\1=hidden", text)
        text = _SYSTEM.sub("OS=hidden ", text)
        text = _SECRET.sub(r"\1hidden", text)
        text = _PATH.sub(r"\1/hidden", text)
        if self._people:
            lines = re.compile(
                r"((?:UserId|Owner|Users|AllowAccounts|DenyAccounts|Accounts|Account|AllowGroups|Groups|GroupId)=)([^\s()]+)"
                r"|(\[)([^\s\[\]@]+)(?=@)|(^\w*User\s*= )(\S+?)(?=\(|$)",
                re.M,
            )
            text = lines.sub(self._renamed, text)
        for pattern, new in self._hosts:
            text = pattern.sub(lambda match, new=new: _filled(new, match), text)  # type: ignore[misc]
        return _ADDRESS.sub(self._address, text)

    def name(self, name: str) -> str:
        """One name of a user, an account or a group."""
        return self._people.get(name, name)

    def words(self, text: str) -> str:
        """A message: the names in it wherever they stand."""
        return self._known.sub(lambda name: self._people[name[0]], self(text))

    def table(self, text: str, fields: Sequence[str]) -> str:
        """A table of sacctmgr's, with these fields: of its rows below the head line the cells that hold names."""
        head, *rows = text.split("\n")
        masked = (
            "|".join(self.name(cell) if field in _COLUMNS else cell for field, cell in zip(fields, row.split("|"), strict=True))
            if row.count("|") == len(fields) - 1
            else self(row)
            for row in rows
        )
        return "\n".join((head, *masked))

    def _renamed(self, match: "re.Match[str]") -> str:
        head, names = next((match[at], match[at + 1]) for at in (1, 3, 5) if match[at] is not None)
        return head + self._known.sub(lambda name: self._people[name[0]], names)

    def _address(self, match: "re.Match[str]") -> str:
        try:
            address = ip_address(match[0])
        except ValueError:
            return match[0]
        if address.is_loopback or address.is_unspecified:
            return match[0]
        number = len(self._addresses) + 1
        new = f"10.77.{number // 250}.{number % 250 + 1}" if address.version == 4 else f"fd77::{number:x}"
        return self._addresses.setdefault(match[0], new)


def _named(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(user, account or group; its name) for each that a text names."""
    for text in texts:
        for kind, pattern in _PEOPLE:
            for match in pattern.finditer(text):
                yield from ((kind, name) for group in match.groups() if group for name in group.split(","))


def _cells(text: str, fields: Sequence[str]) -> Iterator[tuple[str, str]]:
    for row in text.split("\n")[1:]:
        yield from ((_COLUMNS[field], cell) for field, cell in zip(fields, row.split("|"), strict=False) if field in _COLUMNS)


def _people(named: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """Name → its new one. Slurm does not mind the case of an account: `Red` and `red` stay the same one."""
    names: dict[str, str] = {}
    new: dict[tuple[str, str], str] = {}
    counts: dict[str, int] = {}
    for kind, name in named:
        if name in KNOWN_PEOPLE or name in names:
            continue
        same = (kind, name.casefold() if kind == "account" else name)
        if same not in new:
            counts[kind] = counts.get(kind, 0) + 1
            new[same] = f"{kind}{counts[kind]}"
        names[name] = new[same]
    return names


def _host_rules(hosts: Iterable[str]) -> tuple[tuple["re.Pattern[str]", tuple[str, ...]], ...]:
    """For each shape of a host name (`gpu#`, `r#-n#.example.org`): what finds it, folded or not, and the words of the new name."""
    shapes = dict.fromkeys(tuple(re.split(r"\d+", host)) for host in hosts if host != "localhost" and not _is_address(host))
    words, rules = _words(), []
    for number, shape in enumerate(sorted(shapes, key=lambda shape: (-len("#".join(shape)), shape)), 1):
        pattern = rf"({_NUMBER})".join(map(re.escape, shape))
        new = (next(words), *("-" for _ in shape[2:]), "") if len(shape) > 1 else (f"host{number}",)
        rules.append((re.compile(rf"(?<![\w.:/\]-]){pattern}(?![\w\[-]|\.\w)"), new))
    return tuple(rules)


def _words() -> Iterator[str]:
    """node, nodeb, nodec, … nodeaa: no two shapes of names become one."""
    yield "node"
    for length in count(1):
        yield from ("node" + "".join(letters) for letters in product(ascii_lowercase, repeat=length) if letters != ("a",))


def _filled(new: tuple[str, ...], match: "re.Match[str]") -> str:
    numbers = match.groups()
    return "".join(word + (numbers[at] if at < len(numbers) else "") for at, word in enumerate(new))


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
