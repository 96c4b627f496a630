"""The commit table: which commits there are, and what follows what, without opening an object.

It is imported when a walk first asks for it: most revisions are found without one.
"""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.commit_table import commits as commits
    from trace_store.commit_table import table as table

__getattr__ = submodules(__name__)
