"""The order in which options stood on the command line.

Typer hands over the values of each option apart; where the order between options matters, as for the messages of
`trace commit`, it is taken from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

from trace_cli.arguments import with_flags

if TYPE_CHECKING:
    from typer import Context
    from typer._click import Context as ClickContext

_KEY = "trace_cli.option-order"


class InOrder(TyperCommand):
    """A command that remembers in which order its options stood.

    Attributes:
        bare: the flags of the option that a number with a dash alone stands for; none when there is none.
    """

    bare: Sequence[str] = ()

    def make_parser(self, ctx: ClickContext) -> Any:
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def remembering(args: list[str]) -> Any:
            values, rest, order = parse(with_flags(self.bare, args))
            ctx.meta[_KEY] = [parameter.name for parameter in order]
            return values, rest, order

        parser.parse_args = remembering  # type: ignore[method-assign]
        return parser


def option_order(ctx: Context) -> Sequence[str]:
    """Return the names of the parameters given, once for each time they were given."""
    return tuple(ctx.meta.get(_KEY, ()))
