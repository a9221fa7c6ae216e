"""site/network-model.yaml: what it must hold, and what is refused with its line."""

import pytest

from glaunch.config import load_model
from glaunch.errors import ConfigError
from glaunch.network_model import NAMES
from glaunch.parsers.network_model import parse_network_model

ONE = "{name}:\n  low: 1\n  expected: 2.5\n  high: 3\n  source: somebody\n"
ALL = "".join(ONE.format(name=name) for name in NAMES)


def test_the_file_that_ships_is_read() -> None:
    assert tuple(load_model()) == NAMES
    assert parse_network_model(ALL, "m.yaml")["efficiency"].expected == 2.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "m.yaml:1: expected names and values"),
        ("[1, 2]", "m.yaml:1: expected names and values"),
        (ONE.format(name="efficiency"), "m.yaml:1: the model is made of .*'ring_step_us' is not as it should be"),
        (ALL + ONE.format(name="luck"), "'luck' is not as it should be"),
        (ALL.replace("  high: 3\n", "", 1), "m.yaml:2: expected low, expected, high and source"),
        (ALL.replace("2.5", "much", 1), "m.yaml:3: expected a number above 0, got 'much'"),
        (ALL.replace("low: 1", "low: 0", 1), "m.yaml:2: expected a number above 0, got '0'"),
        (ALL.replace("somebody", "''", 1), "m.yaml:5: expected a text"),
    ],
)
def test_what_is_no_model_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_network_model(text, "m.yaml")
