"""Commands for people, one file a family.

What only some calls of a command come to is imported by way of this package, when it is first asked for.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.porcelain.giving_back import give_back, give_back_all, kept_otherwise

__all__ = ["give_back", "give_back_all", "kept_otherwise"]

__getattr__ = door(__name__, dict.fromkeys(__all__, "giving_back"))
