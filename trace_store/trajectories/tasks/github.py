"""GitHub issues and pull requests, through the program `gh`, which has the user's login."""

from __future__ import annotations

import json
import re

from trace_store import errors
from trace_store.trajectories.tasks.programs import find_program, run
from trace_store.trajectories.tasks.record import CANCELED, DONE, OPEN, TaskRecord, not_found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_store.trajectories.tasks.programs import Outcome
    from trace_store.trajectories.tasks.record import Place

SECONDS = 15.0
NOT_LOGGED_IN = 4
FIELDS = (
    "number",
    "title",
    "state",
    "stateReason",
    "url",
    "updatedAt",
    "labels",
    "assignees",
    "body",
)
_QUIET = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1"}
_NUMBER = re.compile(r"(?:gh-|gh#|#)([1-9][0-9]{0,9})", re.IGNORECASE)
_NAME = r"[A-Za-z0-9][\w.-]{0,99}"
_FULL = re.compile(rf"({_NAME}/{_NAME})#([1-9][0-9]{{0,9}})")
_ADDRESS = re.compile(
    rf"https://([\w.-]+)/({_NAME}/{_NAME})/(?:issues|pull)/([1-9][0-9]{{0,9}})(?:[/?#].*)?"
)


class GitHub:
    """Tasks such as `#12`, `gh-12`, `owner/repo#12` or an address."""

    name, is_local = "github", False

    def __init__(self, place: Place) -> None:
        self._place = place

    def detect(self, text: str) -> str:
        """Return `#12` or `owner/repo#12`, if the text names an issue or pull request."""
        if found := _NUMBER.fullmatch(text):
            return f"#{found[1]}"
        if _FULL.fullmatch(text):
            return text
        host = self._place.environment.variables("GH_HOST").get("GH_HOST", "github.com")
        if (found := _ADDRESS.fullmatch(text)) and found[1] in ("github.com", host):
            return f"{found[2]}#{found[3]}"
        return ""

    def resolve(self, id: str) -> TaskRecord:
        """Ask `gh` for an issue or pull request.

        Raises:
            InvalidInputError: it is no id of one.
            NotFoundError: there is none.
            TaskError: `gh` is missing, not logged in or fails.
        """
        found = _FULL.fullmatch(self.detect(id)) or _NUMBER.fullmatch(self.detect(id))
        if found is None:
            raise errors.InvalidInputError(f"not an issue of GitHub: {id[:80]!r}", id=id)
        *repository, number = found.groups()
        words = ["issue", "view", number, *(f"--repo={each}" for each in repository)]
        done = self._gh([*words, f"--json={','.join(FIELDS)}"])
        if done.code and (fields := _known(done.err)):
            done = self._gh([*words, f"--json={','.join(fields)}"])
        if done.code:
            raise _failure(done, id)
        try:
            told = json.loads(done.out)
        except (ValueError, RecursionError):
            told = None
        if not isinstance(told, dict):
            raise errors.TaskNonsenseError("the answer of gh is no JSON object")
        return _record(told, self.detect(id))

    def _gh(self, words: list[str]) -> Outcome:
        program = find_program(self._place, "gh")
        if not program:
            raise errors.TaskUnreachableError("gh, the program of GitHub, is not installed")
        return run(self._place, program, words, variables=_QUIET, seconds=SECONDS)


def _known(told: str) -> list[str]:
    """Return the fields that an older `gh` knows, from its complaint about one that it does not."""
    if "unknown json field" not in told.lower():
        return []
    listed = {line.strip() for line in told.splitlines()}
    return [name for name in FIELDS if name in listed]


def _failure(done: Outcome, id: str) -> errors.TraceError:
    if done.code == NOT_LOGGED_IN:
        return errors.TaskRefusedError("gh is not logged in to GitHub", needs="`gh auth login`")
    if "could not resolve to" in done.err.lower():
        return not_found(GitHub.name, id)
    return errors.TaskUnreachableError(f"gh failed: {done.complaint}")


def _record(told: dict[str, Any], id: str) -> TaskRecord:
    state = str(told.get("state")).upper()
    canceled = told.get("stateReason") in ("NOT_PLANNED", "DUPLICATE")
    ended = CANCELED if canceled or (state == "CLOSED" and _is_pull(told)) else DONE
    return TaskRecord.of(
        GitHub.name,
        id,
        title=told.get("title"),
        state=ended if state in ("CLOSED", "MERGED") else OPEN,
        url=told.get("url"),
        updated=told.get("updatedAt"),
        labels=_names(told.get("labels"), "name"),
        assignee=", ".join(_names(told.get("assignees"), "login")),
        description=told.get("body"),
    )


def _is_pull(told: dict[str, Any]) -> bool:
    return "/pull/" in str(told.get("url"))


def _names(listed: object, field: str) -> list[str]:
    found = listed if isinstance(listed, list) else []
    return [str(each[field]) for each in found if isinstance(each, dict) and field in each]
