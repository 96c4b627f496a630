"""The user's list of the repositories that may brief agents.

Text in a repository may come from others, so Trace does not hand it to an agent until the user allows it. The list is a
file in the user's settings folder, like the list of trusted repositories. Each entry names a `.trace` directory by its
real path and owner, so neither a clone nor a copy of the repository inherits the permission.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.environment import Environment
from trace_store.store.store import Store
from trace_store.store.trust import Trust

NAME = "briefing"
"""The file in the user's settings folder."""


class BriefPermission:
    """Whether one repository may brief agents."""

    def __init__(self, store: Store, environment: Environment) -> None:
        self._list = Trust(environment, disk=None, name=NAME)
        self._path = store.layout.root if store.local else ""

    @property
    def is_granted(self) -> bool:
        """Whether the user allowed it; raises as `Trust`."""
        return bool(self._path) and self._list.covers(self._path)

    def grant(self) -> bool:
        """Allow it; return False if it was allowed already.

        Raises:
            StateError: the repository is in memory.
            As `Trust`.
        """
        if not self._path:
            raise errors.StateError("a repository in memory cannot brief agents")
        if self.is_granted:
            return False
        self._list.add(directory=self._path)
        return True

    def withdraw(self) -> bool:
        """Disallow it; return False if it was not allowed; raises as `Trust`."""
        return bool(self._path and self._list.remove(self._path))

    def check(self) -> None:
        """Check that the repository may brief agents.

        Raises:
            StateError: it may not, code `brief-not-allowed`.
            As `Trust`.
        """
        if not self.is_granted:
            raise errors.StateError(
                "this repository is not allowed to brief agents",
                code=errors.ErrorCode.BRIEF_NOT_ALLOWED,
            )
