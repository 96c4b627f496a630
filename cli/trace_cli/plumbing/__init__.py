"""Commands for programs, one file each. Their output is stable to the byte.

Modules needed on rare paths are reached through this package, which loads them late.
"""

from trace_store.base.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.plumbing import addresses as addresses
    from trace_cli.plumbing import contents as contents
    from trace_cli.plumbing import ranges as ranges
    from trace_cli.plumbing import support as support

__getattr__ = submodules(__name__)
