"""Commands for people, one file per family of commands.

Modules needed on rare paths are reached through this package, which loads them on first use.
"""

from trace_store.base.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.porcelain import import_ as import_
    from trace_cli.porcelain import in_progress as in_progress

__getattr__ = submodules(__name__)
