"""The rendered script on a real Slurm, as a plain user: what it promises, each thing once for real."""

import re
import tarfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.node.conftest import Jobs
from tests.plans import GATHERING

from glaunch.attempt import AttemptFolder
from glaunch.bundle import gathered_hosts, read_rows
from glaunch.plan import Option
from glaunch.tuning import Variable

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(180)]

LOG = 'echo "$RANK on $SLURMD_NODENAME" >"$GLAUNCH_LOG_DIR/rank$RANK.log"'


def output(run: AttemptFolder) -> str:
    """All ranks' output, labels on."""
    return "".join((run.path / "out" / f"{host}.log").read_text() for host in run.hosts)


def archived(run: AttemptFolder, host: str) -> dict[str, str]:
    """Name → text of what a host's archive holds."""
    with tarfile.open(run.path / "logs" / f"{host}.tar.gz") as archive:
        members = [(member.name.removeprefix("./"), archive.extractfile(member)) for member in archive if member.isreg()]
        return {name: file.read().decode() for name, file in members if file is not None}


def gathered(run: AttemptFolder) -> set[str]:
    return set(gathered_hosts(run.path))


@pytest.fixture(scope="module")
def slow(jobs: Jobs) -> dict[str, Path]:
    """Jobs that meet their time limit of a minute while the other tests run: the user's --signal for the ranks, and for the batch shell.

    Slurm looks twice a minute and then sends what is due within 30 s: with @5 no earlier than after 25 s, when the ranks are there.
    """
    program = f"trap 'echo told' USR1 USR2; {LOG}; while :; do sleep 1; done"
    folders = {}
    for name, signal in (("limit-ranks", "USR1@5"), ("limit-batch", "B:USR2@5")):
        folders[name] = jobs.make(("sh", "-c", program), name=name, time="1", more=(Option("signal", signal),), per_node=1)
        jobs.submit(folders[name])
    return folders


@pytest.mark.usefixtures("slow")
def test_64_ranks_in_the_planned_order(jobs: Jobs) -> None:
    show = (
        'echo "$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $NODE_RANK $SLURMD_NODENAME $MASTER_ADDR:$MASTER_PORT $X $(pwd) ${nodes-}"'
    )
    reason = Variable("X", "a'b,c $HOME", "--env", "asked for", "")
    folder = jobs.make(("sh", "-c", f"{LOG}; {show}"), nodes=8, per_node=8, variables=(reason,), more=(Option("gpus-per-node", "8"),))
    run = jobs.run(folder, env={"nodes": "mine"})
    assert run.end is not None
    assert (run.end.code, run.end.signal, run.end.told) == (0, 0, ""), jobs.log(folder)
    assert run.start is not None
    assert run.start.order == "planned"
    assert jobs.log(folder) == ""

    hosts = sorted((run.path / "granted").read_text().split(), reverse=True)
    assert list(run.hosts) == hosts
    assert [(place.rank, place.host, place.local_rank) for place in run.ranks] == [(rank, hosts[rank // 8], rank % 8) for rank in range(64)]
    port = run.start.port
    assert sorted(output(run).splitlines()) == sorted(
        f"{rank}: {rank}/64 {rank % 8}/8 {rank // 8} {hosts[rank // 8]} {hosts[0]}:{port} a'b,c $HOME /home/ada mine" for rank in range(64)
    )
    for node, host in enumerate(hosts):
        assert archived(run, host) == {f"rank{rank}.log": f"{rank} on {host}\n" for rank in range(node * 8, node * 8 + 8)}
        assert jobs.box.exec(("ls", run.start.log_dir), node=host).code != 0, "nothing stays on the node"
    assert gathered(run) == set(hosts)
    files = [path for path in run.path.rglob("*") if path.is_file()]
    assert len(files) <= 2 * 8 + 20
    assert all(path.stat().st_mode & 0o77 == 0 for path in (run.path.parent, *run.path.parent.glob("*.sh")))


def test_the_last_node_carries_the_rest(jobs: Jobs) -> None:
    run = jobs.run(jobs.make(("sh", "-c", "echo $LOCAL_WORLD_SIZE"), nodes=8, per_node=8, tasks=60))
    assert Counter(place.host for place in run.ranks) == {host: 4 if host == run.hosts[-1] else 8 for host in run.hosts}
    assert Counter(line.split()[1] for line in output(run).splitlines()) == {"8": 56, "4": 4}


def test_the_code_of_the_program_is_the_jobs(jobs: Jobs) -> None:
    folder = jobs.make(("sh", "-c", f"{LOG}; [ $RANK != 3 ] || exit 7"))
    number = jobs.submit(folder)
    run = jobs.end(folder)[-1]
    assert run.end is not None
    assert run.end.code == 7
    assert gathered(run) == set(run.hosts)
    wait_for_state(jobs, number, "FAILED 7:0")


def wait_for_state(jobs: Jobs, number: str, expected: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        text = jobs.ada("scontrol", "--local", "show", "job", number).stdout
        state, code = re.search(r"JobState=(\S+)", text), re.search(r"\bExitCode=(\S+)", text)
        assert state
        assert code
        seen = f"{state[1]} {code[1]}"
        if seen == expected:
            return
        assert time.monotonic() < deadline, f"{seen}, not {expected}"
        time.sleep(0.2)


def test_each_task_of_an_array_has_its_own_folder(jobs: Jobs) -> None:
    folder = jobs.make(("sh", "-c", f"{LOG}; echo task $SLURM_ARRAY_TASK_ID"), more=(Option("array", "1-3"),))
    jobs.submit(folder)
    runs = jobs.end(folder, 3)
    assert [(run.task, run.restart) for run in runs] == [(1, 0), (2, 0), (3, 0)]
    assert len({run.job_id for run in runs}) == 1
    assert len({run.end.job_id for run in runs if run.end is not None}) == 3
    for run in runs:
        assert set(re.findall(r"task \d", output(run))) == {f"task {run.task}"}
        assert gathered(run) == set(run.hosts)
    assert len(list(folder.glob("batch-*_[123].log"))) == 3


def test_by_hand_it_runs_as_often_as_it_is_submitted(jobs: Jobs) -> None:
    folder = jobs.make(("sh", "-c", "sleep 1"))
    for _ in range(2):
        jobs.submit(folder, by_hand=True)
    runs = jobs.end(folder, 2)
    assert [run.end.code for run in runs if run.end is not None] == [0, 0]
    assert jobs.log(folder) == ""


@pytest.mark.parametrize("shape", [("-N3", "-n5"), ("-N2", "-n8", "--ntasks-per-node=4")], ids="_".join)
def test_by_hand_it_may_have_another_shape(jobs: Jobs, shape: tuple[str, ...]) -> None:
    folder = jobs.make(("sh", "-c", "echo $WORLD_SIZE"), nodes=2, per_node=4)
    run = jobs.run(folder, *shape, by_hand=True)
    assert run.end is not None
    assert run.end.code == 0, jobs.log(folder)
    assert run.start is not None
    assert run.start.order == "planned"
    assert list(run.hosts) == sorted((run.path / "granted").read_text().split(), reverse=True)
    counts = [sum(place.host == host for place in run.ranks) for host in run.hosts]
    assert counts == ([2, 2, 1] if shape[0] == "-N3" else [4, 4])
    assert [place.host for place in run.ranks] == [host for host, count in zip(run.hosts, counts, strict=True) for _ in range(count)]


def test_one_submission_runs_once(jobs: Jobs) -> None:
    folder = jobs.make(("sh", "-c", "until [ -e once ]; do sleep 0.1; done"))
    first, second = jobs.submit(folder), jobs.submit(folder)
    jobs.until(folder, "batch-*.log", "runs the same submission and is not over")
    (jobs.box.home("ada") / "once").touch()
    runs = jobs.end(folder)
    assert [run.job_id for run in runs] in ([first], [second])


def test_a_requeued_job_goes_on_in_a_new_folder(jobs: Jobs) -> None:
    folder = jobs.make(("sh", "-c", f'{LOG}; [ -n "$SLURM_RESTART_COUNT" ] || sleep 300'), more=(Option("requeue", None),))
    number = jobs.submit(folder)
    jobs.until(folder, "*/ranks.tsv", "3\t")
    assert jobs.ada("scontrol", "requeue", number).code == 0
    jobs.end(folder, 1)
    deadline = time.monotonic() + 60
    # A requeued job waits for two minutes; ending that is refused, or forgotten, until its old nodes are free
    while not (folder / f"{number}.0.1").exists():
        jobs.ada("scontrol", "update", f"JobId={number}", "StartTime=now")
        assert time.monotonic() < deadline
        time.sleep(0.5)
    runs = jobs.end(folder, 2)
    assert [(run.job_id, run.restart) for run in runs] == [(number, 0), (number, 1)]
    ends = [run.end for run in runs if run.end is not None]
    assert [(end.code, end.told) for end in ends] == [(143, "TERM"), (0, "")]
    assert gathered(runs[1]) == set(runs[1].hosts)
    assert "same submission" not in jobs.log(folder)


def test_scancel_leaves_what_can_be_saved(jobs: Jobs) -> None:
    folder = jobs.make(("sh", "-c", f"{LOG}; sleep 300"))
    number = jobs.submit(folder)
    jobs.until(folder, "*/ranks.tsv", "3\t")
    jobs.ada("scancel", number)
    run = jobs.end(folder)[-1]
    assert run.end is not None
    assert (run.end.code, run.end.signal, run.end.told) == (143, 15, "TERM")
    assert len(run.ranks) == 4
    batch_host = (run.path / "granted").read_text().split()[0]
    assert batch_host in gathered(run), "a step cannot start any more, but this shell's own host can give its logs"
    assert archived(run, batch_host) == {
        f"rank{place.rank}.log": f"{place.rank} on {batch_host}\n" for place in run.ranks if place.host == batch_host
    }


def test_a_signal_for_the_batch_shell_reaches_the_program(jobs: Jobs) -> None:
    folder = jobs.make(("sh", "-c", "trap 'exit 5' USR1; echo ready; while :; do sleep 0.2; done"))
    number = jobs.submit(folder)
    jobs.until(folder, "*/out/*", "ready")
    jobs.until(folder, "*/ranks.tsv", "3\t")
    jobs.ada("scancel", "-b", "-s", "USR1", number)
    run = jobs.end(folder)[-1]
    assert run.end is not None
    assert run.end.code == 5


@pytest.mark.parametrize("export", ["NONE", "PATH"])
def test_no_export_of_the_login_environment(jobs: Jobs, export: str) -> None:
    reason = Variable("X", "from the plan", "--env", "asked for", "")
    folder = jobs.make(("sh", "-c", f"{LOG}; echo $X"), variables=(reason,))
    run = jobs.run(folder, f"--export={export}")
    assert run.end is not None
    assert run.end.code == 0, jobs.log(folder)
    assert len(run.ranks) == 4
    assert output(run).count("from the plan") == 4
    assert gathered(run) == set(run.hosts)


def test_here_uses_a_part_of_an_allocation(jobs: Jobs) -> None:
    folder = jobs.make(("sh", "-c", f"{LOG}; [ $RANK != 1 ] || exit 3"))
    here = f"sh /home/ada/{folder.name}/job.sbatch here"
    done = jobs.ada("salloc", "-N4", "--ntasks-per-node=2", "-n8", "sh", "-c", f"{here}; {here}")
    assert done.code == 3, done.stderr
    first, second = jobs.end(folder, 2)
    assert (first.run, second.run) == (1, 2)
    for run in (first, second):
        granted = (run.path / "granted").read_text().split()
        assert len(granted) == 4
        assert list(run.hosts) == sorted(granted, reverse=True)[:2]
        assert [place.host for place in run.ranks] == [run.hosts[0]] * 2 + [run.hosts[1]] * 2
        assert gathered(run) == set(run.hosts)


def test_here_under_another_shell(jobs: Jobs) -> None:
    """/bin/sh is bash on most clusters."""
    folder = jobs.make(("sh", "-c", f"{LOG}; [ $RANK != 1 ] || exit 3"))
    done = jobs.ada("salloc", "-N2", "-n4", "bash", "--posix", f"/home/ada/{folder.name}/job.sbatch", "here")
    assert done.code == 3, done.stderr
    said = [line for line in done.stderr.splitlines() if not line.startswith("salloc:")]
    run = jobs.end(folder)[-1]
    assert said == [f"srun: error: {run.hosts[0]}: task 1: Exited with exit code 3"]
    assert gathered(run) == set(run.hosts)


def test_here_needs_an_allocation(jobs: Jobs) -> None:
    folder = jobs.make(("true",))
    done = jobs.ada("sh", f"/home/ada/{folder.name}/job.sbatch", "here")
    assert (done.code, done.stderr) == (2, "glaunch: no allocation here: submit this script with sbatch, or run it inside salloc\n")


def test_a_port_that_is_taken_is_tried_again(jobs: Jobs) -> None:
    # The others wait for rank 0, as in a rendezvous; by exec, since proctrack/linuxproc misses what a shell starts while it is killed
    program = """n=$(cat tries 2>/dev/null || echo 0)
    [ "$RANK" = 0 ] || { [ $n -lt 2 ] || exit 0; exec sleep 100; }
    echo $((n + 1)) >tries; echo $MASTER_PORT >>ports
    [ $n -ge 2 ] || { echo 'OSError: [Errno 98] Address already in use' >&2; exit 1; }"""
    folder = jobs.make(("sh", "-c", program), work_dir="/home/ada/port")
    work = jobs.box.home("ada") / "port"
    work.mkdir()
    work.chmod(0o777)
    run = jobs.run(folder)
    assert run.end is not None
    assert run.end.code == 0, jobs.log(folder)
    assert run.start is not None
    assert run.start.tries == 3
    assert len(set((work / "ports").read_text().split())) == 3
    assert jobs.log(folder).count("was taken on") == 2
    assert len(run.ranks) == 4


def test_without_the_table_the_ranks_follow_slurm(jobs: Jobs) -> None:
    folder = jobs.make(("sh", "-c", f"{LOG}; echo $NODE_RANK $MASTER_ADDR"))
    (folder / "order.tsv").unlink()
    run = jobs.run(folder)
    slurms_own(jobs, folder, run)
    assert "no order: /home/ada" in jobs.log(folder)


def test_where_slurm_takes_no_order_the_ranks_follow_its_own(jobs: Jobs) -> None:
    folder = jobs.make(("sh", "-c", f"{LOG}; echo $NODE_RANK $MASTER_ADDR"))
    programs = jobs.box.home("ada") / "block"
    programs.mkdir(exist_ok=True)
    (programs / "srun").write_text("""#!/bin/sh
for word; do
    [ "$word" != --distribution=arbitrary ] || { echo 'srun: error: Requested distribution not supported' >&2; exit 1; }
done
exec /usr/bin/srun "$@"
""")
    (programs / "srun").chmod(0o755)
    run = jobs.run(folder, env={"PATH": "/home/ada/block:/usr/bin:/bin"})
    slurms_own(jobs, folder, run)
    assert "Slurm does not take the plan's order; the ranks follow Slurm's own" in jobs.log(folder)


def slurms_own(jobs: Jobs, folder: Path, run: AttemptFolder) -> None:
    assert run.end is not None
    assert run.end.code == 0, jobs.log(folder)
    assert run.start is not None
    assert run.start.order == "slurm"
    granted = (run.path / "granted").read_text().split()
    assert list(run.hosts) == granted
    assert [place.host for place in run.ranks] == [granted[0]] * 2 + [granted[1]] * 2
    assert sorted(output(run).splitlines()) == [f"{rank}: {rank // 2} {granted[0]}" for rank in range(4)]
    assert gathered(run) == set(granted)


def test_a_node_that_does_not_see_the_folder_is_named(jobs: Jobs) -> None:
    folder = jobs.make(("true",), nodes=16, per_node=1)
    inside = f"/home/ada/{folder.name}"
    assert jobs.box.exec(("mount", "-t", "tmpfs", "none", inside), node="n003").code == 0
    try:
        number = jobs.submit(folder)
        run = jobs.end(folder, timeout_s=100)[-1]
    finally:
        jobs.box.exec(("umount", inside), node="n003")
    assert run.end is not None
    assert run.end.code == 1
    assert f"glaunch: n003: does not see {inside}\n" in jobs.log(folder)
    assert "glaunch: not every node can take part; no rank was started\n" in jobs.log(folder)
    assert run.ranks == ()
    wait_for_state(jobs, number, "FAILED 1:0")


def test_logs_beyond_the_cap_are_cut_and_said(jobs: Jobs) -> None:
    folder = jobs.make(
        ("sh", "-c", 'head -c 3000000 /dev/zero >"$GLAUNCH_LOG_DIR/r$RANK"'), gathering=replace(GATHERING, cap_bytes=1_000_000)
    )
    run = jobs.run(folder)
    assert {row["reason"] for _, row in read_rows(run.path)} == {"too-large"}
    assert all(len(text) <= 300_000 for host in run.hosts for text in archived(run, host).values())


def test_nodes_need_no_python(no_python: Jobs) -> None:
    assert no_python.box.exec(("sh", "-c", "command -v python3"), node="n001").stdout == ""
    folder = no_python.make(("sh", "-c", f"{LOG}; exit 7"))
    run = no_python.run(folder)
    assert run.end is not None
    assert run.end.code == 7
    assert [place.host for place in run.ranks] == [run.hosts[0]] * 2 + [run.hosts[1]] * 2
    assert gathered(run) == set(run.hosts)


def test_a_missing_interpreter_is_one_line_a_node(no_python: Jobs) -> None:
    sound = no_python.run(no_python.make(("true",), per_node=8)).end
    folder = no_python.make(("/usr/bin/python3", "train.py"), per_node=8)
    run = no_python.run(folder)
    assert sound is not None
    assert run.end is not None
    assert run.end.code == 127
    assert run.end.ended_s - run.end.began_s < sound.ended_s - sound.began_s + 10, "nobody waits for a rank that does not come"
    said = no_python.log(folder).splitlines()
    for host in run.hosts:
        assert [line for line in said if "/usr/bin/python3" in line and host in line] == [f"glaunch: {host}: /usr/bin/python3: not found"]
    assert run.ranks == ()


@pytest.mark.parametrize(("name", "told_by"), [("limit-ranks", "USR1"), ("limit-batch", "USR2")])
def test_before_the_time_limit_the_logs_come_home_and_the_users_signal_works(
    jobs: Jobs, slow: dict[str, Path], name: str, told_by: str
) -> None:
    run = jobs.end(slow[name], timeout_s=130)[-1]
    assert run.end is not None
    assert (run.end.code, run.end.told) == (143, "TERM"), jobs.log(slow[name])
    assert "the time limit is near: gathering the logs now" in jobs.log(slow[name])
    assert output(run).count("told") == 2, told_by
    for place in run.ranks:
        assert archived(run, place.host) == {f"rank{place.rank}.log": f"{place.rank} on {place.host}\n"}
