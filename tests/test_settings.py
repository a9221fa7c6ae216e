"""Settings: folding, partitions, the site's veto; the schema and what is made from it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glaunch import config
from glaunch.errors import ConfigError
from glaunch.parsers.settings_file import parse_settings
from glaunch.report import settings as report
from glaunch.schema import KEYS, SECTIONS, variable_of
from glaunch.settings import OPTION, SHIPPED, SITE, USER, Protection, Row, Setting, Settings, over, placing, table

ROOT = Path(__file__).resolve().parents[1]


def test_the_shipped_file_holds_every_key_with_the_value_that_the_docs_name() -> None:
    shipped = parse_settings((ROOT / "site" / "defaults.yaml").read_text(), "d", SHIPPED, "0.1.0")
    assert shipped.problems == []
    assert {name: setting.value for name, setting in shipped.general.items()} == {name: key.default for name, key in KEYS.items()}


def test_no_two_keys_share_a_variable_and_no_section_is_a_key() -> None:
    assert len({variable_of(name) for name in KEYS}) == len(KEYS)
    assert not SECTIONS & set(KEYS)


@pytest.mark.parametrize(
    ("page", "made"), [("settings", report.keys_markdown()), ("environment", report.rules_markdown(config.load_rules()))]
)
def test_docs_hold_what_the_tables_say(page: str, made: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    found = text.split(f"<!-- made: {page} -->\n")[1].split("\n<!-- end -->")[0]
    assert found == made, f"write it anew: glaunch config docs {page}"


def test_a_getter_says_what_it_found() -> None:
    settings = Settings({"ssh.port": Setting(22, "f:1")})
    assert settings.number("ssh.port") == 22
    with pytest.raises(TypeError, match=r"ssh\.port holds 22, not str"):
        settings.text("ssh.port")


def whole(**changed: tuple[object, int]) -> Settings:
    """Settings with these keys (`__` for the dot) set at a layer."""
    given_here = {name.replace("__", "."): Setting(value, f"layer {layer}", layer) for name, (value, layer) in changed.items()}  # type: ignore[arg-type]
    return Settings({**{name: Setting(key.default, "d") for name, key in KEYS.items()}, **given_here})


@given(st.integers(SHIPPED, OPTION), st.integers(SITE, OPTION))
def test_a_partition_wins_over_its_own_layer_and_weaker_ones_only(general: int, section: int) -> None:
    settings = Settings({"time": Setting("1:00:00", "general", general)}, {"gpu": {"time": Setting("2:00:00", "section", section)}})
    assert settings.for_partition("gpu").where("time") == ("section" if section >= general else "general")
    assert settings.for_partition("cpu") == settings


rows = st.dictionaries(
    st.sampled_from("ABCD"), st.tuples(st.one_of(st.none(), st.text("xyz", max_size=2)), st.integers(SHIPPED, OPTION)), max_size=4
)


@given(rows, rows)
def test_tables_fold_line_by_line(weak: dict[str, tuple[str | None, int]], strong: dict[str, tuple[str | None, int]]) -> None:
    one, two = (
        table({name: Row(name, value, word, "", layer) for name, (value, layer) in lines.items()}, word, 0)
        for word, lines in (("weak", weak), ("strong", strong))
    )
    folded = {row.name: row for row in over(one, two).rows}
    assert set(folded) == set(weak) | set(strong)
    for name, row in folded.items():
        wins = name in strong and (name not in weak or strong[name][1] >= weak[name][1])
        assert (row.value, row.where) == ((strong if wins else weak)[name][0], "strong" if wins else "weak")
    assert over(one, two).value == {name: row.value for name, row in folded.items() if row.value is not None}


@pytest.mark.parametrize(
    ("mode", "allowed", "placed"),
    [
        ("auto", ("pin", "prefer", "order"), "pin"),
        ("auto", ("prefer", "order"), "order"),
        ("auto", ("prefer",), "prefer"),
        ("prefer", ("pin", "prefer"), "prefer"),
        ("auto", ("order",), "order"),
        ("auto", ("pin",), "pin"),
        ("pin", ("pin", "order"), "pin"),
        ("order", ("order",), "order"),
    ],
)
def test_placing_after_the_sites_veto(mode: str, allowed: tuple[str, ...], placed: str) -> None:
    assert placing(whole(placement__mode=(mode, USER), placement__allowed=(allowed, SITE))) == placed


def test_placing_that_is_switched_off_quotes_the_site() -> None:
    settings = whole(placement__mode=("pin", OPTION), placement__allowed=(("order",), SITE))
    with pytest.raises(ConfigError) as caught:
        placing(settings)
    assert str(caught.value) == "layer 6: placement 'pin' is switched off here (layer 1)\n  use 'order' or 'auto'"
    mine = Settings(settings.entries, protected=(Protection("placement.allowed", "Ask hpc-support.", "s:1"),))
    with pytest.raises(ConfigError) as caught:
        placing(mine)
    assert caught.value.hint == "Ask hpc-support."
