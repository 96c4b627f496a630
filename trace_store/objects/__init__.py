"""Objects: the immutable values of a repository and their canonical bytes."""

from trace_store.base.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.objects import commit as commit
    from trace_store.objects import content as content
    from trace_store.objects import operations as operations
    from trace_store.objects import reports as reports

__getattr__ = submodules(__name__)
