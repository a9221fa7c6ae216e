"""Which environment variables a job needs on this fabric, and why. Nothing is set without a reason."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from glaunch.errors import ConfigError
from glaunch.rule import ANY_CLASS, Flag, Rule
from glaunch.secret import HIDDEN, is_secret, shown
from glaunch.settings import USER, Row

INHERITED = "your environment"
UNNAMED = frozenset({"", "none"})
"""Fabric classes for which no rule sets anything."""


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable that the script exports."""

    name: str
    value: str
    origin: str
    """The rule (`R14`), the setting's place (`/etc/glaunch/site.yaml:12`) or `--env`."""
    reason: str
    source: str
    yields: bool = False
    """Set by a rule or the site: modules that the job loads are as good as the environment at launch, and what they set stays."""
    withheld: bool = False
    """A secret: the value is not here, and reaches the job by the environment alone."""


@dataclass(frozen=True, slots=True)
class Environment:
    """All that is set, and what was left alone because the user had set it already."""

    variables: tuple[Variable, ...]
    kept: tuple[Variable, ...]
    """Rules and site lines that gave way: name, the user's own value, origin `your environment`, and the reason of what gave way."""
    notes: tuple[str, ...]
    unset: tuple[Variable, ...] = ()
    """What the script takes out of the inherited environment (`unset NAME`): value is what it was, origin the rule."""


def tune(
    rules: Sequence[Rule],
    *,
    fabric_class: str,
    node_count: int,
    user_env: Mapping[str, str],
    site_env: Sequence[Row] = (),
    extra: Sequence[tuple[str, str]] = (),
    switches: Collection[str] = (),
) -> Environment:
    """What a job on `node_count` nodes exports.

    `user_env` is the environment at launch, `site_env` the lines of `environment.set` (the site's and the user's own, told apart by
    their layer), `extra` what --env gave, `switches` those of `fail_fast` and `debug` that are on. The stronger wins: --env, the
    user's settings, the environment at launch, the site's settings, rules. A weaker value is never set over a stronger one, except
    that names which stop the program (`removes_always`) go whoever set them.

    Raises ConfigError when a settings file holds what a rule refuses.
    """
    holding = tuple(rule for rule in rules if _holds(rule, fabric_class, node_count, switches))
    work = _Work(dict(user_env))
    work.rules(holding)
    work.site([row for row in site_env if row.layer < USER], holding)
    work.give_way()
    work.own([row for row in site_env if row.layer >= USER], extra)
    work.remove(holding)
    work.flag(holding, site_env, extra)
    return Environment(tuple(work.wanted.values()), tuple(work.kept), tuple(dict.fromkeys(work.notes)), tuple(work.unset))


def _holds(rule: Rule, fabric_class: str, node_count: int, switches: Collection[str]) -> bool:
    named = fabric_class not in UNNAMED
    by_class = not rule.classes or (named and (fabric_class in rule.classes or ANY_CLASS in rule.classes))
    by_nodes = rule.least_nodes <= node_count and (rule.most_nodes is None or node_count <= rule.most_nodes)
    return by_class and by_nodes and all((name in switches) == state for name, state in rule.needs)


@dataclass(slots=True)
class _Work:
    """The environment while it is made: from the weakest to the strongest."""

    user_env: dict[str, str]
    wanted: dict[str, Variable] = field(default_factory=dict)
    explicit: set[str] = field(default_factory=set)
    """Names that the user set for glaunch itself: in a settings file or by --env."""
    kept: list[Variable] = field(default_factory=list)
    unset: list[Variable] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def rules(self, holding: Sequence[Rule]) -> None:
        for rule in holding:
            for one in rule.assignments:
                self.wanted[one.name] = Variable(one.name, one.value, rule.id, one.reason, rule.source, yields=True)

    def site(self, rows: Sequence[Row], holding: Sequence[Rule]) -> None:
        """The site's lines over the rules', without those that a rule leaves out for this job."""
        for row in rows:
            rule = next((rule for rule in holding if _matches(row.name, rule.leaves_out)), None)
            if rule and row.value is not None:
                self.notes.append(f"{row.name} of {row.where} is left out: {rule.reason} ({rule.id})")
            else:
                self._take(row, "set by this site for every job")

    def give_way(self) -> None:
        """What the environment at launch holds already stays as it is."""
        for name in list(self.wanted):
            if name in self.user_env and self.user_env[name] != self.wanted[name].value:
                weak = self.wanted.pop(name)
                would = HIDDEN if is_secret(name) else repr(weak.value)
                self.kept.append(
                    Variable(name, self.user_env[name], INHERITED, weak.reason, f"{weak.origin} would set {would}; {weak.source}")
                )

    def own(self, rows: Sequence[Row], extra: Sequence[tuple[str, str]]) -> None:
        """The user's settings, then --env."""
        given = [Row(name, value, "--env", "asked for with --env", USER) for name, value in extra]
        for row in (*rows, *given):
            self.explicit.add(row.name)
            self.kept = [one for one in self.kept if one.name != row.name]
            before = self.user_env.get(row.name)
            if before is not None and row.value is not None and before != row.value:
                after = HIDDEN if is_secret(row.name) else row.value
                self.notes.append(f"{shown(row.name, before)} of your environment is replaced by {after} ({row.where})")
            self._take(row, "set in your own settings")

    def remove(self, holding: Sequence[Rule]) -> None:
        for rule in holding:
            for name in rule.removes_always:
                if name in self.user_env or name in self.wanted:
                    self._unset(name, rule)
                    self.notes.append(f"{name} is taken out, whoever set it: {rule.reason} ({rule.id})")
            for name in rule.removes:
                if name not in self.explicit and name in self.user_env:
                    self._unset(name, rule)

    def flag(self, holding: Sequence[Rule], rows: Sequence[Row], extra: Sequence[tuple[str, str]]) -> None:
        """Say, or refuse, what no rule should let pass in silence."""
        for rule in holding:
            for flag in rule.flags:
                for row in rows:
                    if row.value is None or not _flagged(flag, row.name, row.value):
                        continue
                    if flag.refuse and not row.reason:
                        hint = (
                            f"take it out (one job: --env {row.name}={row.value}), or give your reason: {{value: {row.value!r}, reason: …}}"
                        )
                        raise ConfigError(
                            f"{row.where}: {row.name}={row.value} for every job is refused: {rule.reason} ({rule.id})", hint=hint
                        )
                    self.notes.append(f"{row.name}={row.value} ({row.where}): {rule.reason} ({rule.id})")
                for name, value, where in (*((*pair, "--env") for pair in extra), *self._inherited(flag.names)):
                    if _flagged(flag, name, value):
                        self.notes.append(f"{name}={value} ({where}): {rule.reason} ({rule.id})")

    def _inherited(self, names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        for name in names:
            if name in self.user_env and name not in self.explicit:
                yield name, self.user_env[name], INHERITED

    def _take(self, row: Row, reason: str) -> None:
        self.wanted.pop(row.name, None)
        if row.value is not None:
            self.wanted[row.name] = Variable(row.name, row.value, row.where, row.reason or reason, row.where, yields=row.layer < USER)

    def _unset(self, name: str, rule: Rule) -> None:
        wanted = self.wanted.pop(name, None)
        self.kept = [one for one in self.kept if one.name != name]
        value = self.user_env.get(name, wanted.value if wanted else "")
        self.unset.append(Variable(name, value, rule.id, rule.reason, rule.source))


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in patterns)


def _flagged(flag: Flag, name: str, value: str) -> bool:
    return name in flag.names and value not in flag.allowed and bool(re.search(flag.pattern, value))
