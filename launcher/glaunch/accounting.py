"""What Slurm's accounting allows this user: associations and QOS, with their limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a QOS or an association; a resource that is missing has none. Resources are `node`, `cpu`, `mem` (MiB), `gres/gpu` …"""

    max_wall_s: int | None = None
    per_job: Mapping[str, int] = field(default_factory=dict)
    per_node: Mapping[str, int] = field(default_factory=dict)
    minutes_per_job: Mapping[str, int] = field(default_factory=dict)
    """Resource times the minutes of the time limit."""
    least_per_job: Mapping[str, int] = field(default_factory=dict)
    together: Mapping[str, int] = field(default_factory=dict)
    """All jobs of the QOS (the association) at a time, as the next two."""
    per_user: Mapping[str, int] = field(default_factory=dict)
    per_account: Mapping[str, int] = field(default_factory=dict)
    minutes_together: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Qos:
    """One QOS. `preempts` are those whose jobs must give way to its own; `preempt_mode` is what happens to its jobs (`cluster`: as the
    configuration says); `exempt_s` how long they may run before that, None where the configuration says it."""

    name: str
    limits: Limits = Limits()
    flags: frozenset[str] = frozenset()
    preempts: frozenset[str] = frozenset()
    preempt_mode: str = "cluster"
    exempt_s: int | None = None


@dataclass(frozen=True, slots=True)
class Association:
    """What one account lets this user do, in one partition or (`partition` "") in all of them."""

    account: str
    partition: str
    qos: tuple[str, ...]
    default_qos: str
    limits: Limits = Limits()


@dataclass(frozen=True, slots=True)
class Account:
    """An account of this cluster: `limits` hold for all that is below it together."""

    name: str
    parent: str
    limits: Limits = Limits()


@dataclass(frozen=True, slots=True)
class Accounting:
    """All QOS, this user's associations on this cluster, and its accounts."""

    qos: Mapping[str, Qos]
    associations: tuple[Association, ...]
    default_account: str
    accounts: Mapping[str, Account] = field(default_factory=dict)

    def line_of(self, account: str) -> tuple[Account, ...]:
        """The account and those above it, the root last."""
        line: list[Account] = []
        while (found := self.accounts.get(account)) is not None and found not in line:
            line.append(found)
            account = found.parent
        return tuple(line)

    def association(self, account: str | None, partition: str) -> Association | None:
        """The one that counts for a job of this account (None: the default one) in this partition: its own before that of all."""
        rows = [row for row in self.associations if row.account == (account or self.default_account)]
        return next((row for row in rows if row.partition == partition), None) or next((row for row in rows if not row.partition), None)

    def qos_of(self, asked: str | None, account: str | None, partition: str) -> Qos | None:
        """The QOS of a job: the one asked for, else the association's default, else its only one, else `normal`; None: not known.

        **Source:** Slurm, _determine_and_validate_qos.
        """
        if asked:
            return self.qos.get(asked)
        row = self.association(account, partition)
        if row is None:
            return None
        name = row.default_qos or (row.qos[0] if len(row.qos) == 1 else "normal")
        return self.qos.get(name)
