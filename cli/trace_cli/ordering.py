"""The order of options on the command line.

Typer passes the values of each option separately. Where the order between options matters, as for the messages of
`trace commit`, it is kept here.
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
    """A command that remembers the order of its options.

    Attributes:
        bare: the flags of the option that `-5` is short for; empty if there is none.
    """

    bare: Sequence[str] = ()

    def make_parser(self, ctx: ClickContext) -> Any:
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_and_remember(args: list[str]) -> Any:
            values, rest, order = parse(with_flags(self.bare, args))
            ctx.meta[_KEY] = [parameter.name for parameter in order]
            return values, rest, order

        parser.parse_args = parse_and_remember  # type: ignore[method-assign]
        return parser


def option_order(ctx: Context) -> Sequence[str]:
    """Return the names of the given parameters in order, repeated ones repeatedly."""
    return tuple(ctx.meta.get(_KEY, ()))
