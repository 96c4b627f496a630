"""Commands for people, one file a family.

What only some calls of a command come to is imported by way of this package, when it is first asked for.
"""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.porcelain import import_ as import_
    from trace_cli.porcelain import in_progress as in_progress
    from trace_cli.porcelain import location as location

__getattr__ = submodules(__name__)
