"""Whole outputs, byte for byte, and one hostile text through every sink.

To write the golden files anew after a meant change: `GLAUNCH_GOLDEN=write pytest tests/report`, then read the diff.
"""

import dataclasses
import html.parser
import json
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from glaunch.diagnosis.finding import Finding
from glaunch.errors import ParseError
from glaunch.job import FORGOTTEN, UNTOLD, Job
from glaunch.logs import LogBundle
from glaunch.placement.placement import Cost, OrderRow
from glaunch.plan import Plan, RankLayout
from glaunch.report.documents import plan_document, plan_from_document, report_document
from glaunch.report.html import job_html
from glaunch.report.job import JobReport, bundle_text, headline, job_text, placement_words
from glaunch.report.jobs import JobLine, jobs_text
from glaunch.report.plan import plan_text, read_as, shape, tree
from glaunch.report.text import columns

GOLDEN = Path(__file__).parent / "golden"


def golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("GLAUNCH_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def lines_of(jobs: list[tuple[str, str, str]]) -> list[JobLine]:
    return [
        JobLine(f"s{number}", job, name, None, "runs", where, 60.0 * number, f"/home/ada/{name}")
        for number, (job, name, where) in enumerate(jobs)
    ]


@pytest.mark.parametrize("width", [60, 80])
def test_plan_in_a_terminal(plan: Plan, width: int) -> None:
    text = plan_text(plan, width, now_s=plan.cluster_taken_at_s + 30)
    assert all(columns(line) <= width for line in text.splitlines()), text
    golden(f"plan-{width}.txt", text)


def test_the_tree_of_wide_leaves_fits_a_narrow_terminal(plan: Plan) -> None:
    assert plan.placement is not None
    nodes = tuple(f"n{number:05}" for number in range(1, 33))
    order = [OrderRow(node, at, f"leaf{1 + at // 16}", "spine1") for at, node in enumerate(nodes)]
    lines = tree(dataclasses.replace(plan.placement, nodes=nodes), order, 8, 4096, 60)
    assert max(columns(line) for line in lines) <= 60, lines
    assert [line.split()[-1] for line in lines] == ["spine1", "0–127", "n[00001-00016]", "128–255", "n[00017-00032]"]
    assert len(tree(dataclasses.replace(plan.placement, nodes=nodes), order, 8, 4096, 80)) == 3


def test_plan_that_waits_unpinned_on_an_uneven_shape(plan: Plan) -> None:
    layout = RankLayout(tasks=60, nodes=8, tasks_per_node=8, gpus_per_node=8, gpu_type="")
    text = plan_text(dataclasses.replace(plan, mode="order", mode_why="only 3 of 8 nodes are free", placement=None, layout=layout))
    golden("plan-order.txt", text)


def test_a_state_is_cut_only_where_there_is_no_room() -> None:
    words = "waits for nodes or GPUs that are not free (Resources)"
    start = "starts in about 2 h (Slurm's estimate; changes with the queue)"
    waits = JobLine("s1", "56", "train", None, words, start, 4.0, "/home/ada/glaunch-jobs/t-1")
    runs = JobLine("s2", "55", "train", None, "runs", "n[001-002,005-006,008,012]", 9.0, "/home/ada/glaunch-jobs/t-2")
    lines = jobs_text([waits, runs], 200).splitlines()
    assert words in lines[1]
    assert all(line.endswith(one.folder) for line, one in zip(lines[1:], (waits, runs), strict=True))
    for width in (60, 80, 90):
        text = jobs_text([waits, runs], width)
        assert max(columns(line) for line in text.splitlines()) <= max(width, 63), text
        assert "waits for nodes or GPUs that ar" in text
    assert words in jobs_text([waits, runs], 95)


@pytest.mark.parametrize("width", [60, 80])
def test_report_in_a_terminal(report: JobReport, width: int) -> None:
    golden(f"report-{width}.txt", job_text(report, width))


@pytest.mark.parametrize(
    ("state", "code", "said"),
    [
        (UNTOLD, None, "job 13 (train) has left no end, and Slurm does not say whether it runs"),
        (FORGOTTEN, None, "job 13 (train) is over"),
        (UNTOLD, 0, "job 13 (train) is done, exit code 0"),
        (UNTOLD, 3, "job 13 (train) failed, exit code 3"),
    ],
)
def test_what_slurm_does_not_tell_is_not_over(queued_report: JobReport, template: str, state: str, code: int | None, said: str) -> None:
    silent = dataclasses.replace(queued_report, job=Job("13", state), exit_code=code)
    assert headline(silent) == said
    assert said in job_html(silent, template)


def test_a_cancelled_job_is_not_a_failed_one_while_it_completes(report: JobReport, template: str) -> None:
    told = Finding("GL206", "note", "the job was cancelled", "", None, "batch-12.log:2", "slurmstepd-n001: error: *** JOB 12 …", "")
    ending = dataclasses.replace(report, job=Job("12", "COMPLETING"), exit_code=143)
    assert headline(ending) == "job 12 (train) failed after 1 min, exit code 143"
    assert headline(dataclasses.replace(ending, findings=(told,))) == "job 12 (train) was cancelled after 1 min, exit code 143"


def test_a_script_that_could_not_begin_died_of_no_signal(queued_report: JobReport) -> None:
    unseen = dataclasses.replace(queued_report, job=Job("13", "FAILED", "JobLaunchFailure", exit_signal=53))
    assert headline(unseen) == "job 13 (train) never ran"


def test_no_host_is_not_all_of_them() -> None:
    assert bundle_text(LogBundle("x", ())) == "logs none: it came to no node's ranks\n"


def test_report_of_a_job_that_waits(queued_report: JobReport, template: str) -> None:
    golden("report-queued.txt", job_text(queued_report))
    assert "waits for nodes or GPUs" in job_html(queued_report, template)


def test_report_in_a_browser(report: JobReport, template: str) -> None:
    golden("report.html", job_html(report, template))


def test_report_and_plan_for_programs(report: JobReport, plan: Plan) -> None:
    golden("plan.json", json.dumps(plan_document(plan), indent=1) + "\n")
    golden("report.json", json.dumps(report_document(report), indent=1) + "\n")


def test_hostile_texts_in_a_terminal(evil_plan: Plan, evil_report: JobReport) -> None:
    golden("evil-plan.txt", plan_text(evil_plan))
    golden("evil-report.txt", job_text(evil_report))
    evil = evil_plan.name
    golden("evil-jobs.txt", jobs_text(lines_of([(evil, evil, evil), ("12", "train", "n[001-008]")])))


def test_hostile_texts_in_a_browser(evil_report: JobReport, template: str) -> None:
    golden("evil-report.html", job_html(evil_report, template))


@pytest.mark.parametrize("sink", ["plan", "report", "jobs", "html"])
def test_nothing_hostile_comes_through(evil_plan: Plan, evil_report: JobReport, template: str, sink: str) -> None:
    evil = evil_plan.name
    sinks: dict[str, Callable[[], str]] = {
        "plan": lambda: plan_text(evil_plan),
        "report": lambda: job_text(evil_report),
        "jobs": lambda: jobs_text(lines_of([(evil, evil, evil)]), 120),
        "html": lambda: job_html(evil_report, template),
    }
    text = sinks[sink]()
    assert text.encode()
    for line in text.split("\n"):
        for letter in line:
            assert unicodedata.category(letter) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}, (line, letter)
    assert r"\x1b]8;;http://x" in text


class _Page(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def test_the_page_has_no_element_that_a_text_brought(report: JobReport, evil_report: JobReport, template: str) -> None:
    good, evil = _Page(), _Page()
    same_shape = dataclasses.replace(report, granted=(*report.granted[:2], "n099"))  # the hostile host is none of the fabric's either
    good.feed(job_html(same_shape, template))
    evil.feed(job_html(evil_report, template))
    assert evil.tags == good.tags
    assert "script" not in evil.tags
    names = {name for name, _ in evil.attributes}
    assert not {name for name in names if name.startswith("on") or name in ("src", "href", "style")}
    policy = [value for name, value in evil.attributes if name == "content" and value and "default-src" in value]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"]


def test_json_keeps_the_raw_text_and_no_terminal_obeys_it(evil_plan: Plan, evil_report: JobReport) -> None:
    for document in (plan_document(evil_plan), report_document(evil_report)):
        text = json.dumps(document)
        assert text.isascii()
        assert all(ord(letter) >= 0x20 for letter in text)
    assert json.loads(json.dumps(plan_document(evil_plan)))["name"] == evil_plan.name


def test_a_plan_comes_back_from_its_document(plan: Plan, evil_plan: Plan) -> None:
    for one in (plan, evil_plan):
        assert plan_from_document(json.loads(json.dumps(plan_document(one))), "plan.json") == one
    bare = dataclasses.replace(plan, placement=None, best_possible=None, time_limit_s=None, order=())
    assert plan_from_document(json.loads(json.dumps(plan_document(bare))), "plan.json") == bare


def test_a_plan_for_a_large_cluster_is_a_small_document(plan: Plan) -> None:
    order = tuple(OrderRow(f"n{row:06d}", row, f"leaf{row // 32}", f"spine{row // 512}") for row in range(32_768))
    text = json.dumps(plan_document(dataclasses.replace(plan, order=order)), indent=1)
    assert len(text) < 200_000
    assert plan_from_document(json.loads(text), "plan.json").order == order


@pytest.mark.parametrize("order", [None, "n1", [["n1"]], [{"pod": "p", "leaf": "l"}], [{"pod": "p", "leaf": 1, "nodes": "n1"}]])
def test_a_broken_order_is_told_with_its_file(plan: Plan, order: object) -> None:
    with pytest.raises(ParseError, match=r"plan\.json: order: expected"):
        plan_from_document({**plan_document(plan), "order": order}, "plan.json")


def test_how_the_line_was_read() -> None:
    assert read_as(("train.py", "--lr", "1e-3")) == "train.py gets: --lr 1e-3"
    assert read_as(("train.py", "a b", "$x")) == "train.py gets: 'a b' '$x'"
    assert read_as(("train.py",)) == "train.py gets no arguments"


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (RankLayout(64, 8, 8, 8, ""), "8 nodes × 8 GPUs = 64 ranks"),
        (RankLayout(8, 1, 8, 8, "h100"), "1 node × 8 GPUs (h100) = 8 ranks"),
        (RankLayout(1, 1, 1, 1, ""), "1 node × 1 GPU = 1 rank"),
        (RankLayout(60, 8, 8, 8, ""), "8 nodes × 8 GPUs, 60 ranks: 8 a node, 4 on the last"),
        (RankLayout(16, 2, 8, 4, ""), "2 nodes × 4 GPUs, 16 ranks, 8 a node"),
        (RankLayout(16, 2, 8, 0, ""), "2 nodes, 16 ranks, 8 a node"),
    ],
)
def test_the_shape_says_both_nodes_and_ranks(plan: Plan, layout: RankLayout, words: str) -> None:
    assert shape(dataclasses.replace(plan, layout=layout)) == words


def test_the_report_says_what_is_known_and_no_more(report: JobReport, template: str) -> None:
    good = dataclasses.replace(report, job=Job("12", "COMPLETED"), exit_code=0, findings=(), tails=(), logs=None, planned_cost=None)
    text, page = job_text(good), job_html(good, template)
    assert text.startswith("job 12 (train) is done after 1 min, exit code 0\n")
    assert '<header class="good">' in page
    assert "planned" not in text
    assert "findings" not in text
    assert "at best    2 leaves in 1 pod, 2.14 switches between two nodes on average" in text


def test_many_hosts_do_not_fill_the_screen(report: JobReport) -> None:
    assert report.logs is not None
    hosts = tuple(dataclasses.replace(report.logs.hosts[index % 2], host=f"n{index:03d}") for index in range(100)) + report.logs.hosts[2:]
    logs = dataclasses.replace(report.logs, hosts=hosts)
    text = bundle_text(logs)
    assert "and 69 more hosts" in text
    assert "unreachable: 10.77.1.3" in text, "those that are missing are always shown"
    page = job_text(dataclasses.replace(report, logs=logs))
    assert "unreachable: 10.77.1.3" in page
    assert "n000 " not in page, "a host whose logs are home needs no line"


def test_a_failure_says_its_cause_in_the_first_three_lines(report: JobReport) -> None:
    assert job_text(report).splitlines()[:3] == [
        "job 12 (train) failed after 1 min, exit code 5",
        "  ✗ rank 17 on n003 exited with code 5",
        "    17: ValueError: 5",
    ]


def test_a_job_that_got_its_plan_says_so_in_one_line(report: JobReport) -> None:
    assert report.plan is not None
    assert report.plan.placement is not None
    good = dataclasses.replace(report, granted=report.plan.placement.nodes, granted_cost=report.planned_cost)
    assert placement_words(good) == [
        ("got", "2 leaves in 1 pod, 2.14 switches between two nodes on average: as planned, the best there could be")
    ]


def test_a_plan_of_many_leaves_shows_the_pods(plan: Plan) -> None:
    order = tuple(OrderRow(f"n{row:04d}", row, f"leaf{row // 8:03d}", f"spine{row // 256}") for row in range(1024))
    assert plan.placement is not None
    placement = dataclasses.replace(plan.placement, nodes=tuple(row.node for row in order))
    layout = RankLayout(8192, 1024, 8, 8, "h100")
    text = plan_text(dataclasses.replace(plan, placement=placement, order=order, layout=layout))
    assert "             spine3  32 leaves, 256 nodes, ranks 6144–8191\n" in text
    assert len(text.splitlines()) < 40


def test_a_finding_wraps_and_keeps_its_parts(report: JobReport) -> None:
    finding = Finding("GL102", "warning", "word " * 40, "", None, "12.0.0/ordered:1", "evidence " * 20, "advice " * 20)
    text = job_text(dataclasses.replace(report, findings=(finding,), granted_cost=Cost(0, 0, 1, 1)), 60)
    assert all(len(line) <= 60 for line in text.splitlines() if "n003" not in line and "/home/ada" not in line)
    assert text.count("word") == 40
    assert text.count("evidence") == text.count("advice") == 20
