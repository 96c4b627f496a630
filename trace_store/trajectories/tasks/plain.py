"""Tasks of no system: only their ids are known."""

from __future__ import annotations

import re

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from trace_store.trajectories.tasks.record import Place

_ID = re.compile(r"[A-Z][A-Z0-9_]*-[0-9]+")


class Plain:
    """Ids such as `ENG-456`, if no system is configured for them."""

    name, is_local = "plain", True

    def __init__(self, place: Place) -> None:
        pass

    def detect(self, text: str) -> str:
        """Return the id, if the text is one."""
        return text if _ID.fullmatch(text) else ""

    def resolve(self, id: str) -> NoReturn:
        """Raise an error, since there is no system to ask.

        Raises:
            StateError: always.
        """
        raise errors.StateError(
            f"no task system is configured for {id[:80]!r}",
            code=errors.ErrorCode.NO_TASK_SYSTEM,
            id=id,
        )
