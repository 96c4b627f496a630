"""Commands for programs, one file each: output documented to the byte, nothing but data on standard output.

What only some calls of a command come to is imported by way of this package, when it is first asked for.
"""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.plumbing import addresses as addresses
    from trace_cli.plumbing import contents as contents
    from trace_cli.plumbing import ranges as ranges
    from trace_cli.plumbing import support as support

__getattr__ = submodules(__name__)
