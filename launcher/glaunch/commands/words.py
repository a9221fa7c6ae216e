"""Values of options, refused with what they may be and what was probably meant."""

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # no generic before click 8.2


class OneOf(_Choice):
    """One of a few words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401 - click's own
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            from difflib import get_close_matches

            near = get_close_matches(str(value), self.choices, 1)
            self.fail(f"{value!r} is none of {', '.join(self.choices)}" + (f"; did you mean {near[0]}?" if near else ""), param, ctx)


class Whole(click.IntRange):
    """A whole number from a least one on. Ranges (`-N 2-4`) and suffixes are sbatch's: a plan is for one number."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401 - click's own
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            self.fail(f"{value!r} is no whole number from {self.min}", param, ctx)
