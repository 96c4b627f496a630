"""The commit table: an index of all commits and their parents.

Loaded when a walk first needs it; most revisions are resolved without it.
"""

from trace_store.base.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.commit_table import commits as commits
    from trace_store.commit_table import table as table
    from trace_store.commit_table import walks as walks

__getattr__ = submodules(__name__)
