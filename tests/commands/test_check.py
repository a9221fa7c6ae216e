"""`glaunch check` on the capture that ships: what it says to people and to programs."""

import json
from pathlib import Path

from click.testing import CliRunner

from glaunch.cli import glaunch

DEMO = Path(__file__).resolve().parents[2] / "site" / "captures" / "demo16"


def test_it_says_what_was_seen_and_through_what() -> None:
    done = CliRunner().invoke(glaunch, ["--snapshot", str(DEMO), "check"])
    assert done.exit_code == 0, done.output

    assert done.output.startswith("Slurm ")
    assert "capture (a capture:" in done.output
    assert "16 nodes, 1 partition, 1 reservation" in done.output
    assert "on 3 tiers" in done.output
    assert "by commands" not in done.output


def test_the_same_for_programs() -> None:
    done = CliRunner().invoke(glaunch, ["--snapshot", str(DEMO), "check", "--json"])
    document = json.loads(done.stdout)
    assert (document["schema"], document["gateway"], document["submission"]) == ("glaunch.contact/1", "capture", "sbatch")
    assert (document["nodes"], document["nodes_hidden"], document["partitions"], document["reservations"]) == (16, False, 1, 1)
    assert document["by_commands"] == {}
    assert document["took_s"] >= 0
