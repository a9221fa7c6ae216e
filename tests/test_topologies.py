"""Which of Slurm's topologies is meant, and what is said of the others."""

from dataclasses import replace

from tests.decisions import CLUSTER

from glaunch.topologies import NO_NAMES, Topologies, topologies_of

(GPU,) = CLUSTER.partitions[:1]
NVL, OTHER = replace(GPU, name="nvl", topology="nvl"), replace(GPU, name="cpu")


def test_the_partitions_of_each_topology() -> None:
    assert topologies_of((GPU, OTHER)) == {}, "no topology has a name"
    assert topologies_of((GPU, NVL, OTHER)) == {"": ("gpu", "cpu"), "nvl": ("nvl",)}
    assert topologies_of((GPU, NVL), ("cables", "nvl", "rest"), "cables") == {"cables": ("gpu",), "nvl": ("nvl",), "rest": ()}


def test_the_others_are_said_with_what_shows_them() -> None:
    assert NO_NAMES.others_in_words() == ""
    unnamed = topologies_of((GPU, NVL, OTHER))
    assert Topologies("", unnamed).others_in_words() == "Slurm has another topology too: nvl (partition nvl); --name nvl shows it"
    assert (
        Topologies("nvl", unnamed).others_in_words()
        == "Slurm has another topology too: the default one (partitions gpu, cpu); without --name"
    )
    named = topologies_of((GPU, NVL), ("cables", "nvl", "rest"), "cables")
    default = Topologies("cables", named, "cables")
    assert default.others_in_words() == "Slurm has other topologies too: nvl (partition nvl), rest (no partition); --name NAME shows one"
    assert (default.asked, Topologies("nvl", named, "cables").asked) == ("", "nvl")
