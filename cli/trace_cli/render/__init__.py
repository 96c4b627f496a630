"""Forms of output: escaped text, tables for people, JSON records for programs.

Import from the modules themselves; by way of this package only what few calls of a command come to.
"""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.render import changes as changes
    from trace_cli.render import graph as graph
    from trace_cli.render import structure as structure

__getattr__ = submodules(__name__)
