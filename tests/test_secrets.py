"""Secrets: which names are, what a plan is without before it is written, and what --export means."""

import json
from dataclasses import replace

import pytest
from tests.plans import GATHERING, load_templates, make_plan

from glaunch.errors import UsageError
from glaunch.gateways.slurm_environment import submitting_environment
from glaunch.inherited import around_steps, with_inherited
from glaunch.plan import Option
from glaunch.report.documents import plan_document
from glaunch.report.plan import plan_text, read_as
from glaunch.report.summary import summary
from glaunch.request import Request, exporting, with_option
from glaunch.script import render
from glaunch.secret import is_secret, secret_words, shown_line, shown_list, shown_words
from glaunch.settings import PROJECT, SITE, Row
from glaunch.tuning import tune
from glaunch.withheld import without_secrets

SECRETS = (
    *("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "WANDB_API_KEY", "OPENAI_APIKEY", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "PGPASSWORD"),
    *("db_pass", "MYSQL_PWD", "SSHPASS", "GOOGLE_APPLICATION_CREDENTIALS", "REGISTRY_AUTH", "SENTRY_DSN", "COOKIE", "API_TOKENS", "token"),
)
NO_SECRETS = ("PWD", "OLDPWD", "SSH_AUTH_SOCK", "TOKENIZERS_PARALLELISM", "NCCL_DEBUG", "PATH", "KEYBOARD", "COMPASS_HOME", "AUTHOR")


def test_names_of_secrets() -> None:
    assert [name for name in SECRETS if not is_secret(name)] == []
    assert [name for name in NO_SECRETS if is_secret(name)] == []


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        (("train.py", "--api-key=sk-1", "--lr", "1e-3"), ("--api-key",)),
        (("train.py", "--api-key", "sk-1"), ("--api-key",)),
        (("train.py", "-token", "abc", "--wandb.key=x"), ("-token", "--wandb.key")),
        (("train.py", "--max-tokens=4096", "--keys", "8", "--use-auth-token", "--add-token", "true"), ()),
        (("train.py", "--ssh-key", "/home/ada/.ssh/id", "token=abc"), ()),
    ],
)
def test_secrets_among_arguments(argv: tuple[str, ...], found: tuple[str, ...]) -> None:
    assert secret_words(argv) == found


def test_nothing_that_is_written_or_said_holds_a_secret() -> None:
    """From every way by which one gets into a plan: --env, one's own settings, the site's, the environment at launch."""
    rows = (
        Row("SITE_TOKEN", "s3cret-site", "/etc/glaunch/site.yaml:3", "", SITE),
        Row("OWN_API_KEY", "s3cret-own", "glaunch.yaml:3", "", PROJECT),
        Row("TAKEN_SECRET", "s3cret-weak", "/etc/glaunch/site.yaml:4", "", SITE),
    )
    caller = {"OWN_API_KEY": "s3cret-before", "TAKEN_SECRET": "s3cret-strong"}
    request = with_option(Request(("train.py",), env=(("HF_TOKEN", "s3cret-typed"),)), "export", "NONE,DB_PASSWORD=s3cret-pair")
    tuned = tune((), fabric_class="", node_count=2, user_env=caller, site_env=rows, extra=request.env)
    plan = replace(make_plan("/j/a-1", ("train.py",), more=(Option("export", request.export),)), request=request, environment=tuned)
    written, hidden = without_secrets(plan)
    assert hidden == {
        "SITE_TOKEN": "s3cret-site", "OWN_API_KEY": "s3cret-own", "HF_TOKEN": "s3cret-typed", "DB_PASSWORD": "s3cret-pair",
    }  # fmt: skip
    texts = [text for _, text in render(written, load_templates(), version="1", gathering=GATHERING).texts]
    said = [json.dumps(plan_document(written)), plan_text(written), *summary(written), *texts]
    assert [text for text in said if "s3cret" in text] == []
    export = next(option.value for option in written.directives if option.name == "export")
    assert export == "DB_PASSWORD,SITE_TOKEN,OWN_API_KEY,HF_TOKEN"


def test_a_secret_on_the_command_line_is_said() -> None:
    written, _ = without_secrets(make_plan("/j/a-1", ("train.py", "--api-key=sk-1")))
    assert "--api-key: an argument stands in the job's folder" in written.notes[0]
    assert "sk-1" not in written.notes[0]
    plan = make_plan("/j/a-1", ("train.py",))
    written, _ = without_secrets(replace(plan, launch=replace(plan.launch, setup=("export HF_TOKEN=hf_1", "A_KEY=$B source x"))))
    assert [note.partition(":")[0] for note in written.notes] == ["HF_TOKEN"]


def test_what_is_shown_of_a_plan_is_without_the_secrets_among_its_words() -> None:
    """The job's own files need them; pages and documents are handed on."""
    words = ("train.py", "--api-key", "s3cret-1", "--token=s3cret-2", "--db", "postgres://ada:s3cret-3@db:5432/runs", "--lr", "1e-3")
    plan = make_plan("/j/a-1", words)
    launch = replace(plan.launch, argv=words, setup=("export HF_TOKEN='s3cret 4'; cd /x", "A_KEY=s3cret-5 PATH=/x:$PATH login"))
    plan = replace(plan, launch=launch, request=Request(words, setup=launch.setup))
    said = [json.dumps(plan_document(plan)), plan_text(plan), read_as(words)]
    assert [text for text in said if "s3cret" in text] == []
    assert shown_words(words) == (
        *("train.py", "--api-key", "(not shown)", "--token=(not shown)", "--db", "postgres://ada:(not shown)@db:5432/runs", "--lr", "1e-3"),
    )
    assert shown_line(launch.setup[0]) == "export HF_TOKEN=(not shown); cd /x"
    assert shown_line(launch.setup[1]) == "A_KEY=(not shown) PATH=/x:$PATH login"
    assert shown_words(("https://h/a:b@c", "a@b:c", "--tokens")) == ("https://h/a:b@c", "a@b:c", "--tokens")


@pytest.mark.parametrize(
    ("value", "export", "env"),
    [
        ("NONE", "NONE", ()),
        ("NIL", "NONE", ()),
        ("ALL", "ALL", ()),
        ("ALL,A,B=1", "ALL", (("B", "1"),)),
        ("A,B=1=2", "A,B", (("B", "1=2"),)),
        ("NONE,A", "A", ()),
    ],
)
def test_export(value: str, export: str, env: tuple[tuple[str, str], ...]) -> None:
    request = exporting(Request(("x",)), value)
    assert (request.export, request.env) == (export, env)


def test_export_of_what_is_not_there_or_has_a_comma_is_refused() -> None:
    with pytest.raises(UsageError, match="no name of a variable"):
        exporting(Request(("x",)), "A,b-c=1")
    with pytest.raises(UsageError, match="there is no mlx5_1 in your environment") as refused:
        with_inherited(exporting(Request(("x",)), "HCA=mlx5_0,mlx5_1"), {})
    assert "--env NAME=VALUE" in refused.value.hint
    assert with_inherited(Request(("x",)), {"SBATCH_EXPORT": "A,T_TOKEN=s3cret", "A": ""}).inherited == (
        "SBATCH_EXPORT=A,T_TOKEN=(not shown)",
    )
    assert shown_list("ALL,A_KEY=x,B=y") == "ALL,A_KEY=(not shown),B=y"


OUTER = {
    "PATH": "/bin", "SLURM_CONF": "/etc/slurm.conf", "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n001", "SLURM_NTASKS": "8",
    "SLURM_STEP_ID": "0", "SLURM_CPU_BIND": "quiet,mask_cpu:0x3", "SLURM_CPU_BIND_LIST": "0x3", "SLURM_CPU_BIND_TYPE": "mask_cpu:",
    "SLURMD_NODENAME": "n001", "SLURM_PROCID": "0", "CUDA_VISIBLE_DEVICES": "3", "PMIX_RANK": "0", "PMIX_MCA_gds": "hash", "PMI_FD": "4",
    "OMPI_MCA_btl": "tcp", "OMPI_COMM_WORLD_RANK": "0",
}  # fmt: skip


def test_a_job_submitted_from_inside_another_gets_nothing_of_it() -> None:
    assert submitting_environment(OUTER) == {"PATH": "/bin", "SLURM_CONF": "/etc/slurm.conf", "PMIX_MCA_gds": "hash", "OMPI_MCA_btl": "tcp"}
    own = {"CUDA_VISIBLE_DEVICES": "3", "SLURM_CPU_BIND": "cores", "PMI_FD": "4"}
    assert submitting_environment(own) == own


def test_steps_started_from_inside_a_step_keep_the_job_and_not_its_binding() -> None:
    assert set(OUTER) - set(around_steps(OUTER)) == {
        "SLURM_CPU_BIND", "SLURM_CPU_BIND_LIST", "SLURM_CPU_BIND_TYPE", "SLURM_PROCID", "CUDA_VISIBLE_DEVICES", "PMIX_RANK", "PMI_FD",
        "OMPI_COMM_WORLD_RANK",
    }  # fmt: skip
    batch = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_CPU_BIND": "cores"}
    assert around_steps(batch) == batch
