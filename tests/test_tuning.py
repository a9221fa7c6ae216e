"""Rules as they ship, and the laws that hold for any rule: who wins, nothing without a reason, the same every time."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glaunch import config
from glaunch.errors import ConfigError
from glaunch.parsers.rules import parse_rules
from glaunch.rule import Rule
from glaunch.schema import FABRIC_CLASSES
from glaunch.settings import PROJECT, SITE, USER, Row
from glaunch.tuning import Environment, tune

RULES = config.load_rules()
FATAL = {name for rule in RULES for name in rule.removes_always}
SWITCHES = [(), ("fail_fast",), ("debug",), ("fail_fast", "debug")]


def shipped(
    fabric_class: str,
    nodes: int,
    *switches: str,
    user_env: dict[str, str] | None = None,
    site: list[Row] | None = None,
    extra: list[tuple[str, str]] | None = None,
) -> Environment:
    return tune(
        RULES,
        fabric_class=fabric_class,
        node_count=nodes,
        user_env=user_env or {},
        site_env=site or [],
        extra=extra or [],
        switches=switches,
    )


def values(environment: Environment) -> dict[str, str]:
    return {variable.name: variable.value for variable in environment.variables}


SLINGSHOT = {
    "NCCL_NET": "AWS Libfabric",
    "NCCL_SOCKET_IFNAME": "hsn",
    "FI_CXI_DISABLE_HOST_REGISTER": "1",
    "FI_MR_CACHE_MONITOR": "userfaultfd",
    "FI_CXI_DEFAULT_CQ_SIZE": "131072",
    "FI_CXI_DEFAULT_TX_SIZE": "2048",
    "FI_CXI_RX_MATCH_MODE": "hybrid",
    "NCCL_NET_GDR_LEVEL": "PHB",
    "NCCL_DEBUG": "WARN",
}


@pytest.mark.parametrize(
    ("fabric_class", "nodes", "switches", "expected"),
    [
        ("", 8, (), {}),
        ("none", 8, (), {}),
        ("", 8, ("fail_fast", "debug"), {}),
        ("infiniband", 8, (), {"NCCL_DEBUG": "WARN"}),
        ("infiniband", 8, ("fail_fast",), {"NCCL_NET": "IB", "NCCL_DEBUG": "WARN"}),
        ("roce", 8, ("fail_fast",), {"NCCL_NET": "IB", "NCCL_DEBUG": "WARN"}),
        ("roce", 1, ("fail_fast",), {"NCCL_DEBUG": "WARN"}),
        ("slingshot", 2, (), SLINGSHOT),
        ("slingshot", 1, (), {"NCCL_DEBUG": "WARN"}),
        ("efa", 4, (), {"NCCL_NET": "AWS Libfabric", "NCCL_DEBUG": "WARN"}),
        ("gib", 4, (), {"NCCL_NET": "gIB", "NCCL_DEBUG": "WARN"}),
        ("tcpx", 4, (), {"NCCL_NET": "GPUDirectTCPX_v7", "NCCL_DEBUG": "WARN"}),
        ("fastrak", 4, (), {"NCCL_NET": "FasTrak", "NCCL_DEBUG": "WARN"}),
        ("ethernet", 4, (), {"NCCL_DEBUG": "WARN"}),
        ("ethernet", 4, ("debug",), {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV,NET,GRAPH"}),
    ],
)
def test_the_rules_that_ship(fabric_class: str, nodes: int, switches: tuple[str, ...], expected: dict[str, str]) -> None:
    environment = shipped(fabric_class, nodes, *switches)
    assert values(environment) == expected
    assert (environment.kept, environment.unset, environment.notes) == ((), (), ())


@pytest.mark.parametrize("fabric_class", FABRIC_CLASSES)
@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("switches", SWITCHES)
def test_no_two_rules_that_hold_together_set_one_name(fabric_class: str, nodes: int, switches: tuple[str, ...]) -> None:
    alone = [
        shipped_rule
        for rule in RULES
        for shipped_rule in tune([rule], fabric_class=fabric_class, node_count=nodes, user_env={}, switches=switches).variables
    ]
    assert len({variable.name for variable in alone}) == len(alone)


def test_on_one_node_what_is_inherited_goes_and_what_was_asked_for_stays() -> None:
    environment = shipped("slingshot", 1, user_env={"NCCL_NET": "AWS Libfabric", "NCCL_IB_TC": "3"})
    assert [(variable.name, variable.value, variable.origin) for variable in environment.unset] == [("NCCL_NET", "AWS Libfabric", "R02")]
    asked = shipped("slingshot", 1, user_env={"NCCL_NET": "AWS Libfabric"}, extra=[("NCCL_NET", "Socket")])
    assert (values(asked), asked.unset) == ({"NCCL_DEBUG": "WARN", "NCCL_NET": "Socket"}, ())
    site = shipped("infiniband", 1, site=[Row("NCCL_IB_SL", "1", "s:1", "ours", SITE), Row("OMP_NUM_THREADS", "8", "s:2", "", SITE)])
    assert values(site) == {"NCCL_DEBUG": "WARN", "OMP_NUM_THREADS": "8"}
    assert site.notes == ("NCCL_IB_SL of s:1 is left out: " + next(rule.reason for rule in RULES if rule.id == "R02") + " (R02)",)
    assert values(shipped("", 1, site=[Row("NCCL_IB_SL", "1", "s:1", "ours", SITE)])) == {"NCCL_IB_SL": "1"}


def test_what_stops_the_program_on_efa_goes_whoever_set_it() -> None:
    environment = shipped(
        "efa",
        2,
        user_env={"FI_EFA_MTU_SIZE": "1", "FI_EFA_ZCPY_RX_SEED": "2", "FI_EFA_SET_CUDA_SYNC_MEMOPS": "0", "FI_PROVIDER": "efa"},
        extra=[("FI_EFA_TX_IOV_LIMIT", "3"), ("FI_EFA_ZCPY_RX_SEED", "4")],
    )
    assert {variable.name: variable.value for variable in environment.unset} == {
        "FI_EFA_MTU_SIZE": "1",
        "FI_EFA_TX_IOV_LIMIT": "3",
        "FI_EFA_SET_CUDA_SYNC_MEMOPS": "0",
    }
    assert values(environment)["FI_EFA_ZCPY_RX_SEED"] == "4"
    assert not set(values(environment)) & FATAL
    assert all(any(note.startswith(name) for note in environment.notes) for name in ("FI_EFA_MTU_SIZE", "FI_EFA_TX_IOV_LIMIT"))
    assert shipped("slingshot", 2, user_env={"FI_EFA_MTU_SIZE": "1"}).unset == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [("NCCL_ALGO", "Ring"), ("NCCL_PROTO", "LL128"), ("NCCL_IB_HCA", "mlx5_$SLURM_LOCALID"), ("UCX_NET_DEVICES", "mlx5_`id`:1")],
)
@pytest.mark.parametrize("layer", [SITE, PROJECT])
def test_a_file_that_a_rule_refuses(name: str, value: str, layer: int) -> None:
    with pytest.raises(ConfigError) as caught:
        shipped("", 2, site=[Row(name, value, "s.yaml:7", "", layer)])
    assert caught.value.message.startswith(f"s.yaml:7: {name}={value} for every job is refused: ")
    reasoned = shipped("", 2, site=[Row(name, value, "s.yaml:7", "our plugin can do nothing else", layer)])
    assert values(reasoned) == {name: value}
    assert reasoned.notes[0].startswith(f"{name}={value} (s.yaml:7): ")


def test_what_a_rule_lets_pass_or_only_tells() -> None:
    assert (
        shipped("", 2, site=[Row("NCCL_PROTO", "^LL128", "s:1", "", SITE), Row("NCCL_IB_HCA", "=mlx5_0,mlx5_1", "s:2", "", SITE)]).notes
        == ()
    )
    told = shipped("", 2, user_env={"NCCL_ALGO": "Tree"}, extra=[("NCCL_PROTO", "Simple")])
    assert [note.partition(":")[0] for note in told.notes] == ["NCCL_ALGO=Tree (your environment)", "NCCL_PROTO=Simple (--env)"] or [
        note.partition(":")[0] for note in told.notes
    ] == ["NCCL_PROTO=Simple (--env)", "NCCL_ALGO=Tree (your environment)"]


def test_the_order_of_strength() -> None:
    site, mine = Row("NCCL_DEBUG", "VERSION", "s:1", "ours", SITE), Row("NCCL_DEBUG", "INFO", "u:1", "", USER)
    inherited = {"NCCL_DEBUG": "TRACE"}
    assert values(shipped("efa", 1)) == {"NCCL_DEBUG": "WARN"}
    assert values(shipped("efa", 1, site=[site])) == {"NCCL_DEBUG": "VERSION"}
    kept = shipped("efa", 1, site=[site], user_env=inherited)
    assert values(kept) == {}
    assert [(one.name, one.value, one.origin, one.reason, one.source) for one in kept.kept] == [
        ("NCCL_DEBUG", "TRACE", "your environment", "ours", "s:1 would set 'VERSION'; s:1")
    ]
    owned = shipped("efa", 1, site=[mine], user_env=inherited)
    assert (values(owned), owned.kept) == ({"NCCL_DEBUG": "INFO"}, ())
    assert owned.notes == ("NCCL_DEBUG=TRACE of your environment is replaced by INFO (u:1)",)
    assert values(shipped("efa", 1, site=[mine], user_env=inherited, extra=[("NCCL_DEBUG", "ABORT")])) == {"NCCL_DEBUG": "ABORT"}


@pytest.mark.parametrize("layer", [SITE, USER])
def test_null_holds_a_rule_back(layer: int) -> None:
    assert values(shipped("efa", 1, site=[Row("NCCL_DEBUG", None, "s:1", "", layer)])) == {}


NAMES = sorted(
    {one.name for rule in RULES for one in rule.assignments} | FATAL | {"NCCL_ALGO", "FI_EFA_ZCPY_RX_SEED", "NCCL_IB_TC", "MINE"}
)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
assigned = st.dictionaries(st.sampled_from(NAMES), texts, max_size=6)
rows = st.builds(
    lambda lines: [Row(name, lines[name][0], f"f:{number}", "said why", lines[name][1]) for number, name in enumerate(sorted(lines))],
    st.dictionaries(st.sampled_from(NAMES), st.tuples(st.one_of(st.none(), texts), st.sampled_from([SITE, USER, PROJECT])), max_size=6),
)
asked = st.lists(st.tuples(st.sampled_from(NAMES), texts), max_size=4)
cases = st.tuples(st.sampled_from(["", *FABRIC_CLASSES]), st.integers(1, 3), assigned, rows, asked, st.sampled_from(SWITCHES))
Case = tuple[str, int, dict[str, str], list[Row], list[tuple[str, str]], tuple[str, ...]]


def run(case: Case) -> Environment:
    fabric_class, nodes, inherited, site, extra, switches = case
    return shipped(fabric_class, nodes, *switches, user_env=inherited, site=site, extra=extra)


@given(cases)
def test_nothing_without_a_reason_and_no_name_twice(case: Case) -> None:
    environment = run(case)
    for variable in (*environment.variables, *environment.kept, *environment.unset):
        assert variable.reason
        assert variable.origin
        assert variable.source
    names = [variable.name for part in (environment.variables, environment.kept, environment.unset) for variable in part]
    assert len(names) == len(set(names))
    assert all(environment.notes)


@given(cases)
def test_the_same_every_time_whatever_the_order_of_the_environment(case: Case) -> None:
    fabric_class, nodes, inherited, site, extra, switches = case
    turned = (fabric_class, nodes, dict(reversed(inherited.items())), site, extra, tuple(reversed(switches)))
    assert run(case) == run(turned)


@given(cases)
def test_the_users_own_value_wins(case: Case) -> None:
    _, _, inherited, site, extra, _ = case
    environment = run(case)
    exported, unset = values(environment), {variable.name for variable in environment.unset}
    own = {row.name: row.value for row in site if row.layer >= USER} | dict(extra)
    for name, value in own.items():
        if name not in FATAL:
            assert exported.get(name) == value
            assert name not in unset
    for name, value in inherited.items():
        if name not in own and name not in unset:
            assert exported.get(name, value) == value  # as it is, or exported with the very same value
    assert {variable.name: variable.value for variable in environment.kept}.items() <= inherited.items()


@given(cases)
def test_without_a_class_only_what_was_asked_for_is_set(case: Case) -> None:
    environment = run(("none", *case[1:]))
    assert {variable.name for variable in environment.variables} <= {row.name for row in case[3]} | {name for name, _ in case[4]}
    assert environment.unset == ()


@given(st.dictionaries(st.sampled_from(NAMES), texts, max_size=6))
def test_what_was_in_the_environment_is_set_unset_or_left_but_never_lost(inherited: dict[str, str]) -> None:
    environment = shipped("slingshot", 1, user_env=inherited)
    assert {variable.name for variable in environment.unset} == {"NCCL_NET"} & set(inherited)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", "r:1: expected a list of rules"),
        ("- {id: R1}", "r:1: expected 'title' in each rule"),
        ("- {id: R1, tilte: x}", "r:1: unknown name 'tilte'"),
        ("- {id: a, title: b, reason: c, source: d, if_wrong: e,\n   when: {class: [ib]}}", "r:2: expected fabric classes"),
        ("- {id: a, title: b, reason: c, source: d, if_wrong: e, when: {nodes: few}}", "r:1: expected a number of nodes"),
        (
            "- {id: a, title: b, reason: c, source: d, if_wrong: e, flags: [{names: [x], pattern: '['}]}",
            "r:1: expected a regular expression",
        ),
        ("- {id: a, title: b, reason: c, source: '', if_wrong: e}", "r:1: expected a text"),
        ("- {id: a, title: b, reason: c, source: d, if_wrong: e, set: {X: {reason: y}}}", "r:1: expected a text"),
    ],
)
def test_a_rule_that_is_none(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_rules(text, "r")
    assert caught.value.message.startswith(message)


def test_every_rule_is_told_in_the_docs() -> None:
    text = (Path(__file__).resolve().parents[1] / "docs/environment.md").read_text()
    assert {rule.id for rule in RULES} == {"R01", "R02", "R06", "R14", "R23", "R60", "R63", "R64", "R70"}
    assert all(f"### {rule.id} " in text for rule in RULES)


def test_a_rule_needs_nothing_but_its_texts() -> None:
    (rule,) = parse_rules("- {id: a, title: b, reason: c, source: d, if_wrong: e, set: {X: 1}}", "r")
    assert rule == Rule("a", "b", "c", "d", "e", assignments=rule.assignments)
    assert values(tune([rule], fabric_class="", node_count=1, user_env={})) == {"X": "1"}


@pytest.mark.parametrize(("switches", "value"), [((), None), (("container",), "all")])
def test_adapters_are_asked_for_where_there_is_a_container(switches: tuple[str, ...], value: str | None) -> None:
    tuned = tune(RULES, fabric_class="infiniband", node_count=2, user_env={}, switches=switches)
    assert {one.name: one.value for one in tuned.variables}.get("MELLANOX_VISIBLE_DEVICES") == value
