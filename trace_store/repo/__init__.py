"""The front door: a repository with the verbs that one types all day.

    from trace_store.repo import Repo

One module a subject; the object that opens has them all. What a verb needs of the floors below is imported when it is
called, as far as those offer it so.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.repo.repository import Repo

__all__ = ["Repo"]

__getattr__ = door(__name__, {"Repo": "repository"})
