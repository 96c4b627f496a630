"""Output: escaped text, tables for people, JSON for programs.

Modules needed on rare paths are reached through this package, which loads them late.
"""

from trace_store.base.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.render import changes as changes
    from trace_cli.render import graph as graph
    from trace_cli.render import records as records
    from trace_cli.render import structure as structure

__getattr__ = submodules(__name__)
