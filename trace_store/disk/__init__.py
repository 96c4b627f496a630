"""The disk: files, the layout of `.trace/`, and the ways in which file systems differ."""

from trace_store.base.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.disk import git as git

__getattr__ = submodules(__name__)
