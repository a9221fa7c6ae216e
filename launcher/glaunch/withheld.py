"""A plan without its secrets: their values leave it before anything is written, and reach the job by sbatch's environment."""

import re
from dataclasses import replace

from glaunch.plan import Option, Plan
from glaunch.secret import HIDDEN, is_secret, secret_words
from glaunch.tuning import Variable


def without_secrets(plan: Plan) -> tuple[Plan, dict[str, str]]:
    """(the plan as it may be written, name → value of what it is without).

    A variable whose name says that it is a secret stays in the plan by its name. Where the job does not get the whole environment
    (`--export`), its name joins those that go along.
    """
    environment = plan.environment
    hidden = {one.name: one.value for one in environment.variables if is_secret(one.name)}
    request = replace(plan.request, env=tuple(pair for pair in plan.request.env if not is_secret(pair[0])))
    written = replace(
        environment,
        variables=tuple(map(_withheld, environment.variables)),
        kept=tuple(map(_withheld, environment.kept)),
        unset=tuple(map(_withheld, environment.unset)),
    )
    return (
        replace(
            plan,
            request=request,
            environment=written,
            directives=tuple(_with_names(option, tuple(hidden)) for option in plan.directives),
            notes=(*plan.notes, *_typed(plan)),
        ),
        hidden,
    )


def _withheld(variable: Variable) -> Variable:
    return replace(variable, value=HIDDEN, withheld=True) if is_secret(variable.name) else variable


def _with_names(option: Option, names: tuple[str, ...]) -> Option:
    """`--export=NONE` and `--export=A,B` with the names of the secrets too; with ALL they go along anyway."""
    if option.name != "export" or not option.value or not names or "ALL" in option.value.split(","):
        return option
    words = [word for word in option.value.split(",") if word != "NONE"]
    return replace(option, value=",".join(dict.fromkeys((*words, *names))), why=option.why or "the last names are secrets of this job")


def _typed(plan: Plan) -> tuple[str, ...]:
    """What is said of a secret on the command line: glaunch changes no argument, and cannot hide it either."""
    set_here = re.findall(r"([A-Za-z_]\w*)=[^\s$]", "\n".join(plan.launch.setup))
    lines = tuple(
        f"{name}: a line of setup stands in the job's folder as it is; a secret is safer in your environment, or by --env"
        for name in dict.fromkeys(filter(is_secret, set_here))
    )
    found = secret_words(plan.launch.argv)
    if not found:
        return lines
    return (
        *lines,
        f"{', '.join(found)}: an argument stands in the job's folder (mode 0700) and in the list of processes of every node; "
        "a secret is safer as a variable: export NAME=…, or --env NAME=…",
    )
