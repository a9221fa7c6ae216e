"""Which words of a launch line are glaunch's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glaunch.errors import UsageError
from glaunch.inherited import NOT_HANDED_ON, with_inherited
from glaunch.request import Request, Words, apart, asks, read_words, split_components, with_option

OPTIONS = {"-n": True, "--ntasks": True, "-N": True, "--nodes": True, "-t": True, "--time": True, "--exclusive": False, "-v": False}


@pytest.mark.parametrize(
    ("line", "own", "command"),
    [
        ("train.py -n 64 --lr 1e-3", "-n 64", "train.py --lr 1e-3"),
        ("-n 64 train.py --lr 1e-3", "-n 64", "train.py --lr 1e-3"),
        ("-n 64 train.py -n 5", "-n 64", "train.py -n 5"),
        ("train.py -n64 --lr 1e-3 -n 5", "-n64", "train.py --lr 1e-3 -n 5"),
        ("train.py --ntasks=64 -v data -v", "--ntasks=64 -v", "train.py data -v"),
        ("train.py -n 64 -- -v", "-n 64", "train.py -v"),
        ("train.py --lr 1 -n 64", "", "train.py --lr 1 -n 64"),
        ("-n 64 -- train.py -- x", "-n 64", "train.py -- x"),
        ("-n 64 --exclusive ./a.out", "-n 64 --exclusive", "./a.out"),
        ("train.py -n 64 -", "-n 64", "train.py -"),
        ("-n 64", "-n 64", ""),
        ("train.py", "", "train.py"),
    ],
)
def test_words_are_told_apart(line: str, own: str, command: str) -> None:
    words = read_words(line.split(), OPTIONS)
    assert (words.own, words.command) == (tuple(own.split()), tuple(command.split()))


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("-np", "did you mean -n? "),
        ("--gpus=8", "did you mean -n, a rank a GPU? "),
        ("--nproc_per_node=8", "did you mean --ntasks-per-node? "),
        ("--pty", "options of the script go behind it; "),
    ],
)
def test_other_launchers_words_are_answered_with_ours(word: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"'{word}' is no option of glaunch") as refused:
        read_words([word, "8", "train.py"], {"-n": True, "--ntasks": True, "--tp": True, "--gpus-per-node": True})
    assert refused.value.hint.startswith(hint)


def test_an_unknown_option_before_the_script_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError) as error:
        read_words(["--ntask", "64", "train.py"], OPTIONS)
    assert "--ntask" in error.value.message
    assert "did you mean --ntasks?" in error.value.hint


def test_some_options_are_glaunchs_before_the_script_alone() -> None:
    before = {"--profile": True, "--hold": False}
    assert read_words(["--profile", "all", "--hold", "train.py", "--profile", "mine"], OPTIONS, before) == Words(
        ("--profile", "all", "--hold"), ("train.py", "--profile", "mine")
    )
    assert read_words(["train.py", "-n", "8", "--profile", "mine", "--hold"], OPTIONS, before) == Words(
        ("-n", "8"), ("train.py", "--profile", "mine", "--hold")
    )


@pytest.mark.parametrize(
    ("line", "late"),
    [
        ("train.py -n 8 --steps 5 --ntasks=4", ("--ntasks=4",)),
        ("train.py --steps 5 -n 8", ("-n",)),
        ("train.py -n 8 --steps 5 -n 3", ()),
        ("-n 8 train.py --steps 5 --ntasks 4", ()),
        ("train.py -n 8 -- --ntasks 4", ()),
    ],
)
def test_a_word_that_was_perhaps_meant_for_glaunch(line: str, late: tuple[str, ...]) -> None:
    assert read_words(line.split(), OPTIONS).late == late


@pytest.mark.parametrize(
    ("line", "slip"),
    [
        ("train.py -n 64 --ntask 8 --x", ("--ntask", "--ntasks")),
        ("train.py --ntassks=8", ("--ntassks", "--ntasks")),
        ("train.py -n 64 --lr 1", ("", "")),
        ("train.py -n 64 --task 1", ("", "")),
        ("-n 64 train.py --ntask 8", ("", "")),
        ("train.py -n 64 -- --ntask 8", ("", "")),
    ],
)
def test_a_word_of_the_scripts_that_is_nearly_one_of_glaunchs(line: str, slip: tuple[str, str]) -> None:
    assert read_words(line.split(), OPTIONS).slip == slip


@given(st.lists(st.text(max_size=5)), st.integers(1, 99))
def test_with_options_first_every_word_behind_the_script_arrives(arguments: list[str], tasks: int) -> None:
    words = read_words(["-n", str(tasks), "train.py", *arguments], OPTIONS)
    assert words == Words(("-n", str(tasks)), ("train.py", *arguments))


@given(st.lists(st.text(max_size=5)), st.integers(1, 99))
def test_behind_two_dashes_every_word_arrives(arguments: list[str], tasks: int) -> None:
    words = read_words(["train.py", "-n", str(tasks), "--", *arguments], OPTIONS)
    assert words == Words(("-n", str(tasks)), ("train.py", *arguments))


@pytest.mark.parametrize(
    ("line", "components"),
    [
        ("-N 2 train.py --lr 1", ["-N 2 train.py --lr 1"]),
        ("-N 2 train.py --lr 1 : -N 1 ./server", ["-N 2 train.py --lr 1", "-N 1 ./server"]),
        ("train.py -n 2 : -n 1 a : -n 1 b", ["train.py -n 2", "-n 1 a", "-n 1 b"]),
        ("-N 2 -- ./a.out x : y", ["-N 2 -- ./a.out x : y"]),
        ("./a.out -n 2 -- : :", ["./a.out -n 2 -- : :"]),
        ("-N 2 ./a.out : -N 1 -- ./b : c", ["-N 2 ./a.out", "-N 1 -- ./b : c"]),
        ("-N 2 ./a.out a:b :c d:", ["-N 2 ./a.out a:b :c d:"]),
        ("-N 2 ./a.out :", ["-N 2 ./a.out", ""]),
    ],
)
def test_a_lone_colon_begins_another_component_unless_it_stands_behind_two_dashes(line: str, components: list[str]) -> None:
    assert split_components(line.split()) == tuple(tuple(one.split()) for one in components)


def test_a_variable_of_sbatch_counts_only_where_the_line_is_silent() -> None:
    environ = {"SBATCH_TIMELIMIT": "3", "SBATCH_PARTITION": "gpu", "SBATCH_OUTPUT": "/x", "SLURM_NTASKS": "4", "SBATCH_OVERCOMMIT": "1"}
    request = with_inherited(Request(("x",), time="5"), environ)
    assert (request.time, request.partition, request.sbatch) == ("5", "gpu", (("overcommit", None),))
    assert request.inherited == ("SBATCH_OVERCOMMIT=1", "SBATCH_PARTITION=gpu")
    assert request.unused == ("SBATCH_OUTPUT=/x", "SLURM_NTASKS=4")
    assert set(environ) <= NOT_HANDED_ON
    assert with_inherited(Request(("x",)), {"SLURM_NTASKS": "4", "SLURM_JOB_ID": "7"}).unused == ()


def test_an_sbatch_option_that_glaunch_knows_is_the_same_as_its_own() -> None:
    request = Request(("x",))
    for name, value in (("time", "5"), ("job-name", "big"), ("cpus-per-task", "4"), ("exclusive", None), ("requeue", None)):
        assert not asks(request, name)
        request = with_option(request, name, value)
        assert asks(request, name)
    assert request == Request(("x",), time="5", name="big", cpus_per_task=4, exclusive=True, requeue=True)
    assert with_option(Request(("x",)), "exclusive", "user").sbatch == (("exclusive", "user"),)
    assert with_option(Request(("x",)), "licenses", "a:1").sbatch == (("licenses", "a:1"),)


@pytest.mark.parametrize(
    ("name", "value"),
    [("wrap", "x"), ("nodes", "4"), ("output", "/x"), ("gpus", "4"), ("time", None), ("cpus-per-task", "x")],
)
def test_an_sbatch_option_that_cannot_be_taken_is_refused(name: str, value: str | None) -> None:
    with pytest.raises(UsageError, match=f"--sbatch {name}"):
        with_option(Request(("x",)), name, value)


def test_gpus_among_gres_are_gpus_per_node() -> None:
    assert apart("gres", "gpu:h100:4,nvme:1") == (("gpus-per-node", "h100:4"), ("gres", "nvme:1"))
    assert apart("gres", "gpu") == (("gpus-per-node", "1"),)
    assert apart("time", "3") == (("time", "3"),)


def test_a_place_for_output_of_ones_own_is_refused_and_the_answer_says_where_output_is() -> None:
    with pytest.raises(UsageError, match="--sbatch output: glaunch decides this itself") as refused:
        with_option(Request(("x",)), "output", "/some/new/folder/%j.out")
    assert "rundir.path" in refused.value.hint
