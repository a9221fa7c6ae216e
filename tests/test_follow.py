"""When a pin is given back, how a file is followed, and how often Slurm is asked."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from glaunch import follow
from glaunch.attempt import attempts
from glaunch.errors import SlurmError
from glaunch.follow import Ending, Follower, Pace, task_codes
from glaunch.growing_file import GrowingFile
from glaunch.job import Job
from glaunch.pin import give_back, pin_verdict
from glaunch.reasons import ended, estimate


def pending(reason: str, required: str = "n[1-2]") -> Job:
    return Job("7", "PENDING", reason, required_nodes=required)


@pytest.mark.parametrize(
    ("job", "waited_s", "verdict"),
    [
        (None, 0, "settled"),
        (Job("7", "RUNNING", required_nodes="n1"), 3, "settled"),
        (Job("7", "CANCELLED", required_nodes="n1"), 3, "settled"),
        (pending("Priority", required=""), 3, "settled"),
        (pending("None"), 3, "wait"),
        (pending("Priority"), 20, "wait"),
        (pending("Priority"), 30, "lift"),
        (pending("Resources"), 3, "lift"),
        (pending("ReqNodeNotAvail,_UnavailableNodes:n006"), 3, "lift"),
        (pending("ReqNodeNotAvail,_May_be_reserved_for_other_job"), 3, "lift"),
    ],
)
def test_final_reasons_lift_at_once_and_others_at_the_end_of_patience(job: Job | None, waited_s: float, verdict: str) -> None:
    assert pin_verdict(job, waited_s, 30) == verdict


class Slurm:
    """Says of the job what it was told to say; counts the questions."""

    def __init__(self, job: Job | SlurmError | None, *, unpins: tuple[str, ...] = ("lifted",)) -> None:
        self.now, self.unpins = job, list(unpins)
        self.looks = 0

    def says(self, job: Job) -> None:
        self.now = job

    def job(self, job_id: str) -> Job | None:
        self.looks += 1
        if isinstance(self.now, SlurmError):
            raise self.now
        return self.now

    def jobs(self, ids: Iterable[str]) -> tuple[Job, ...]:
        job = self.job("".join(ids))
        return () if job is None else (job,)

    def unpin(self, job_id: str) -> str:
        return self.unpins.pop(0) if len(self.unpins) > 1 else self.unpins[0]


@pytest.mark.parametrize(
    ("answer", "pin"), [("lifted", "lifted"), ("running", "settled"), ("over", "settled"), ("unknown", "settled"), ("later", "held")]
)
def test_a_pin_that_slurm_does_not_lift_now_is_still_held(answer: str, pin: str) -> None:
    assert give_back(Slurm(None, unpins=(answer,)), "7", pending("Resources"), 3, 30) == pin
    assert give_back(Slurm(None, unpins=(answer,)), "7", pending("None"), 3, 30) == "held"


def test_a_growing_file_gives_whole_lines_and_the_rest_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "out.log"
    tail = GrowingFile(path, "[3] ")
    assert tail.lines() == []
    path.write_bytes(b"one\ntw")
    assert tail.lines() == ["[3] one"]
    with path.open("ab") as file:
        file.write(b"o\n\xff\xfe no newline")
    assert tail.lines() == ["[3] two"]
    assert tail.lines(last=True) == ["[3] \udcff\udcfe no newline"]


class Clock:
    """Time that passes only while somebody sleeps; `at` runs what is due."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        self.due: list[tuple[float, Callable[[], object]]] = []
        monkeypatch.setattr(follow, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(follow, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        for when_s, act in [one for one in self.due if one[0] <= self.now_s]:
            self.due.remove((when_s, act))
            act()

    def at(self, when_s: float, act: Callable[[], object]) -> None:
        self.due.append((when_s, act))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


class Watched:
    """A job's folder and a Follower of it."""

    def __init__(self, folder: Path, slurm: Slurm, *, pinned: bool = False, array: bool = False, host: str = "") -> None:
        self.folder, self.pins, self.said, self.shown, self.started = folder, [], [], [], 0  # type: ignore[var-annotated]
        self.follower = Follower(
            slurm,
            folder,
            "12",
            pinned=pinned,
            array=array,
            host=host,
            pace=Pace(patience_s=30, poll_s=10, max_poll_s=60),
            out=self.shown.append,
            talk=self.said.append,
            on_pin=self.pins.append,
            on_start=self.start,
        )

    def start(self, _: object) -> None:
        self.started += 1

    def begin(self, name: str) -> None:
        (self.folder / name / "out").mkdir(parents=True)
        (self.folder / name / "ordered").write_text("n2\nn1\n")

    def end(self, name: str, code: int = 0, told: str = "") -> None:
        document = {"schema": "glaunch.exit/1", "job_id": "12", "code": code, "signal": 0, "told": told, "began_s": 1, "ended_s": 2}
        (self.folder / name / "exit.json").write_text(json.dumps(document))


RUNNING, DONE = Job("12", "RUNNING"), Job("12", "COMPLETED")


@pytest.mark.parametrize("folder_seen_s", [1, 5])
def test_that_it_runs_is_said_once_by_whom_sees_it_first(tmp_path: Path, clock: Clock, folder_seen_s: int) -> None:
    slurm = Slurm(RUNNING)
    watched = Watched(tmp_path, slurm)
    clock.at(folder_seen_s, lambda: watched.begin("12.0.0"))
    clock.at(40, lambda: slurm.says(DONE))
    clock.at(40, lambda: watched.end("12.0.0", 0))
    watched.follower.run()
    assert watched.said == ["job 12 runs"]


@pytest.mark.parametrize(("state", "code", "told"), [("COMPLETED", 0, (1, "glaunch")), ("FAILED", 9, (9, "job"))])
def test_a_job_that_left_its_shell_in_a_line_of_setup_is_not_done(
    tmp_path: Path, clock: Clock, state: str, code: int, told: tuple[int, str]
) -> None:
    slurm = Slurm(Job("12", "RUNNING"))
    watched = Watched(tmp_path, slurm)
    (tmp_path / "12.0.0").mkdir()
    (tmp_path / "12.0.0" / "setup").write_text("exec true\n")
    clock.at(5, lambda: slurm.says(Job("12", state, exit_code=code)))
    ending = watched.follower.run()
    assert ending is not None
    assert (ending.code, ending.told_by) == told
    assert ending.message == "job 12 ended in a line of setup, no rank was started: exec true"
    assert watched.said == ["job 12 runs"], "not that it is done"


def test_of_a_job_with_an_end_the_last_line_of_setup_says_nothing(tmp_path: Path) -> None:
    for task, end in enumerate(("", '{"code": 0}')):
        run = tmp_path / f"12.{task}.0"
        run.mkdir()
        (run / "setup").write_text("A_KEY=hf_1 exec true\n")
        if end:
            (run / "exit.json").write_text(end)
    runs = attempts(tmp_path)
    assert [run.left_in for run in runs] == ["A_KEY=(not shown) exec true", ""]
    done = (Job("12_0", "COMPLETED"), Job("12_1", "COMPLETED"))
    assert task_codes(runs, done) == {0: 1, 1: 0}
    assert task_codes(runs, (Job("12_0", "RUNNING"),)) == {1: 0}
    assert task_codes(runs[:1], (Job("12", "COMPLETED"),)) == {0: 1}


@pytest.mark.parametrize(("ends_s", "said"), [(30, 1), (12, 0)])
def test_a_job_that_goes_on_without_a_failed_rank_is_told_of_once(tmp_path: Path, clock: Clock, ends_s: float, said: int) -> None:
    slurm = Slurm(RUNNING)
    watched = Watched(tmp_path, slurm)
    clock.at(1, lambda: watched.begin("12.0.0"))
    lines = [
        f"srun: error: n1: {task}\n" for task in ("task 3: Exited with exit code 0", "task 5: Exited with exit code 1", "tasks 6-7: Killed")
    ]
    clock.at(2, lambda: (tmp_path / "batch-12.log").write_text("".join(lines)))
    clock.at(ends_s, lambda: slurm.says(DONE))
    clock.at(ends_s, lambda: watched.end("12.0.0", 1))
    watched.follower.run()
    words = "job 12 goes on without what failed (n1: task 5: Exited with exit code 1); glaunch cancel 12 ends it"
    assert watched.said == ["job 12 runs", words][: 1 + said]


def test_the_end_is_seen_at_once_and_a_running_job_is_hardly_asked_about(tmp_path: Path, clock: Clock) -> None:
    slurm = Slurm(RUNNING)
    watched = Watched(tmp_path, slurm)
    clock.at(1, lambda: watched.begin("12.0.0"))
    clock.at(2, lambda: (tmp_path / "12.0.0/out/n2.log").write_text("0: hello\n0: no newline"))
    clock.at(600, lambda: slurm.says(DONE))
    clock.at(600, lambda: watched.end("12.0.0", 7))
    ending = watched.follower.run()
    assert ending == Ending(7, "job", DONE, "")
    assert clock.now_s < 601
    assert watched.shown == ["0: hello", "0: no newline"]
    assert watched.started == 1
    assert slurm.looks <= 3 * 10


def test_a_pin_is_looked_at_four_times_at_most_and_given_back(tmp_path: Path, clock: Clock) -> None:
    slurm = Slurm(pending("Priority"))
    watched = Watched(tmp_path, slurm, pinned=True)
    assert watched.follower.run(until=lambda: not watched.follower.pinned) is None
    assert watched.pins == ["lifted"]
    assert slurm.looks == 4
    assert 30 <= clock.now_s < 31


def test_a_pin_that_slurm_would_lift_later_is_tried_again(tmp_path: Path, clock: Clock) -> None:
    watched = Watched(tmp_path, Slurm(pending("Resources"), unpins=("later", "lifted")), pinned=True)
    watched.follower.run(until=lambda: not watched.follower.pinned)
    assert watched.pins == ["lifted"]
    assert 8 <= clock.now_s < 9


def test_the_tasks_of_an_array_that_end_cost_no_question_each(tmp_path: Path, clock: Clock) -> None:
    slurm = Slurm(Job("12_2", "RUNNING"))
    watched = Watched(tmp_path, slurm, array=True)
    for task in range(100):
        clock.at(task + 1, lambda task=task: watched.begin(f"12.{task}.0"))  # type: ignore[misc]
        clock.at(task + 1.5, lambda task=task: watched.end(f"12.{task}.0", 3 * (task == 5)))  # type: ignore[misc]
    clock.at(101, lambda: slurm.says(Job("12_99", "COMPLETED")))
    ending = watched.follower.run()
    assert ending is not None
    assert ending.code == 3
    assert watched.started == 100
    assert slurm.looks <= 14


def test_a_silent_controller_is_told_once_and_the_files_go_on(tmp_path: Path, clock: Clock) -> None:
    watched = Watched(tmp_path, Slurm(SlurmError("slurm_load_jobs error: whatever")))
    clock.at(1, lambda: watched.begin("12.0.0"))
    clock.at(100, lambda: watched.end("12.0.0", 0))
    ending = watched.follower.run()
    assert ending == Ending(0, "job", None, "")
    assert len([line for line in watched.said if "still following" in line]) == 1


def test_a_job_that_runs_again_is_followed_on(tmp_path: Path, clock: Clock) -> None:
    slurm = Slurm(RUNNING)
    watched = Watched(tmp_path, slurm)
    clock.at(1, lambda: watched.begin("12.0.0"))
    clock.at(2, lambda: slurm.says(Job("12", "PENDING", "BeginTime", restarts=1)))
    clock.at(2, lambda: watched.end("12.0.0", 143))
    clock.at(60, lambda: slurm.says(RUNNING))
    clock.at(60, lambda: watched.begin("12.0.1"))
    clock.at(70, lambda: slurm.says(DONE))
    clock.at(70, lambda: watched.end("12.0.1"))
    ending = watched.follower.run()
    assert ending == Ending(0, "job", DONE, "")
    assert any("is back in the queue" in line for line in watched.said)


@pytest.mark.parametrize(
    ("told", "own", "state", "code", "looks"),
    [
        ("TERM", 0, "CANCELLED", 143, 2),
        ("TERM", 0, "TIMEOUT", 143, 2),
        ("TERM", 0, "PREEMPTED", 143, 2),
        ("INT", 0, "CANCELLED", 130, 2),
        ("TERM", 7, "CANCELLED", 7, 2),
        ("TERM", 0, "COMPLETED", 0, 2),
        ("", 0, "COMPLETED", 0, 1),
    ],
)
def test_a_program_that_ends_with_0_when_it_is_told_to_is_done_only_where_slurm_says_so(
    tmp_path: Path, clock: Clock, told: str, own: int, state: str, code: int, looks: int
) -> None:
    """At first Slurm says no more than that the job is ending. One that nobody ended costs no second question."""
    slurm = Slurm(RUNNING)
    watched = Watched(tmp_path, slurm)
    clock.at(1, lambda: watched.begin("12.0.0"))
    clock.at(2, lambda: slurm.says(Job("12", "COMPLETING")))
    clock.at(2, lambda: watched.end("12.0.0", own, told))
    clock.at(2.5, lambda: slurm.says(Job("12", state)))
    ending = watched.follower.run()
    assert ending is not None
    assert (ending.code, ending.told_by, ending.job) == (code, "job", Job("12", state if told else "COMPLETING"))
    assert ending.message.endswith(f", and its program said 0: exit code {code}" if code != own else "")
    assert slurm.looks == looks
    assert clock.now_s < 4


@pytest.mark.parametrize(
    ("answer", "code", "looks"),
    [(Job("12", "COMPLETING"), 143, 6), (SlurmError("no answer"), 143, 1), (None, 143, 1)],
    ids=["ending", "silent", "none"],
)
def test_what_slurm_calls_an_early_end_is_not_waited_for_long(
    tmp_path: Path, clock: Clock, answer: Job | SlurmError | None, code: int, looks: int
) -> None:
    slurm = Slurm(RUNNING)
    watched = Watched(tmp_path, slurm)
    clock.at(1, lambda: watched.begin("12.0.0"))
    clock.at(2, lambda: setattr(slurm, "now", answer))
    clock.at(2, lambda: watched.end("12.0.0", 0, "TERM"))
    ending = watched.follower.run()
    assert ending is not None
    assert ending.code == code
    assert slurm.looks == looks
    assert clock.now_s < 20


def test_a_program_that_ends_with_0_when_slurm_takes_its_job_back_is_followed_on(tmp_path: Path, clock: Clock) -> None:
    slurm = Slurm(RUNNING)
    watched = Watched(tmp_path, slurm)
    clock.at(1, lambda: watched.begin("12.0.0"))
    clock.at(2, lambda: slurm.says(Job("12", "COMPLETING")))
    clock.at(2, lambda: watched.end("12.0.0", 0, "TERM"))
    clock.at(4, lambda: slurm.says(Job("12", "PENDING", "BeginTime", restarts=1)))
    clock.at(60, lambda: watched.begin("12.0.1"))
    clock.at(70, lambda: slurm.says(DONE))
    clock.at(70, lambda: watched.end("12.0.1"))
    assert watched.follower.run() == Ending(0, "job", DONE, "")
    assert any("is back in the queue" in line for line in watched.said)


def test_a_cancelled_task_of_an_array_is_not_done_because_it_ended_with_0(tmp_path: Path, clock: Clock) -> None:
    slurm = Slurm(Job("12_1", "RUNNING"))
    watched = Watched(tmp_path, slurm, array=True)
    clock.at(1, lambda: watched.begin("12.1.0"))
    clock.at(2, lambda: slurm.says(Job("12_1", "CANCELLED")))
    clock.at(2, lambda: watched.end("12.1.0", 0, "TERM"))
    ending = watched.follower.run()
    assert ending is not None
    assert (ending.code, ending.tasks) == (143, {1: 143})


def test_how_a_job_ended_is_said_by_its_code_until_slurm_knows() -> None:
    assert ended(0, Job("12", "COMPLETING")) == "done"
    assert ended(7, RUNNING) == "ended with exit code 7"
    assert ended(143, Job("12", "CANCELLED")) == "was cancelled"
    assert ended(None, Job("12", "COMPLETING")) == "is ending"


def test_what_ran_by_hand_in_the_same_folder_is_not_the_job_that_is_followed(tmp_path: Path, clock: Clock) -> None:
    watched = Watched(tmp_path, Slurm(DONE))
    for name, code in (("12.0.0", 0), ("15.0.0", 9)):
        watched.begin(name)
        watched.end(name, code)
    (tmp_path / "batch-12.log").write_text("mine\n")
    (tmp_path / "batch-123.log").write_text("by hand\n")
    assert watched.follower.run() == Ending(0, "job", DONE, "")
    assert watched.shown == ["mine"]


def test_another_host_than_rank_0s_may_be_followed(tmp_path: Path, clock: Clock) -> None:
    watched = Watched(tmp_path, Slurm(DONE), host="n1")
    watched.begin("12.0.0")
    for host in ("n1", "n2"):
        (tmp_path / "12.0.0/out" / f"{host}.log").write_text(f"from {host}\n")
    (tmp_path / "batch-12.log").write_text("the batch script\n")
    watched.end("12.0.0")
    watched.follower.run()
    assert watched.shown == ["from n1"]


def test_a_job_that_has_told_its_code_is_over_whatever_slurm_still_says() -> None:
    for state in ("RUNNING", "COMPLETING", "COMPLETED"):
        assert (ended(0, Job("12", state)), ended(3, Job("12", state))) == ("done", "ended with exit code 3")
    assert ended(143, Job("12", "TIMEOUT")) == "reached its time limit and was stopped"


def test_slurms_estimate_of_the_start_is_said_with_its_caveat(tmp_path: Path, clock: Clock) -> None:
    waiting = Job("12", "PENDING", "Resources", start_s=7300)
    assert estimate(waiting, 100.0) == "starts in about 2 h (Slurm's estimate; changes with the queue)"
    assert estimate(Job("12", "PENDING", "Resources"), 100.0) == estimate(waiting, 8000.0) == ""
    assert estimate(Job("12", "RUNNING", start_s=7300), 100.0) == ""
    assert estimate(replace(waiting, start_s=800 * 86400), 100.0).startswith("no start in sight: jobs without a time limit come first")
    slurm = Slurm(replace(waiting, start_s=1 << 40))
    watched = Watched(tmp_path, slurm)
    clock.at(100, lambda: slurm.says(DONE))
    watched.follower.run()
    assert "Slurm's estimate" in watched.said[0]
    assert len([line for line in watched.said if "estimate" in line]) == 1


def test_a_task_that_left_no_exit_code_has_slurms() -> None:
    lost, failed, killed = Job("7_2", "NODE_FAIL"), Job("7_3", "FAILED", exit_code=5), Job("7_4", "CANCELLED", exit_signal=9)
    assert task_codes((), (Job("7_1", "COMPLETED"), lost, failed, killed, Job("7_5", "RUNNING"))) == {1: 0, 2: 1, 3: 5, 4: 137}
