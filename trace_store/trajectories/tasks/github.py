"""GitHub issues and pull requests, through the program `gh`, which has the user's login."""

from __future__ import annotations

import json
import re
from typing import Any

from trace_store import errors
from trace_store.trajectories.tasks.programs import ProgramResult, find_program, run
from trace_store.trajectories.tasks.systems import (
    CANCELED,
    DONE,
    OPEN,
    LocalProject,
    TaskRecord,
    not_found,
)

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

    def __init__(self, project: LocalProject) -> None:
        self._project = project

    def detect(self, text: str) -> str:
        """Return `#12` or `owner/repo#12`, if the text names an issue or pull request."""
        if found := _NUMBER.fullmatch(text):
            return f"#{found[1]}"
        if _FULL.fullmatch(text):
            return text
        host = self._project.environment.variables("GH_HOST").get("GH_HOST", "github.com")
        if (found := _ADDRESS.fullmatch(text)) and found[1] in ("github.com", host):
            return f"{found[2]}#{found[3]}"
        return ""

    def resolve(self, id: str) -> TaskRecord:
        """Ask `gh` for an issue or pull request.

        Raises:
            InvalidInputError: the id is not valid.
            NotFoundError: there is no such issue or pull request.
            TaskError: `gh` is missing, not logged in or fails.
        """
        found = _FULL.fullmatch(self.detect(id)) or _NUMBER.fullmatch(self.detect(id))
        if found is None:
            raise errors.InvalidInputError(f"not an issue of GitHub: {id[:80]!r}", id=id)
        *repository, number = found.groups()
        words = ["issue", "view", number, *(f"--repo={each}" for each in repository)]
        done = self._gh([*words, f"--json={','.join(FIELDS)}"])
        if done.code and (fields := _known_fields(done.err)):
            done = self._gh([*words, f"--json={','.join(fields)}"])
        if done.code:
            raise _failure(done, id)
        try:
            answer = json.loads(done.out)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise errors.TaskNonsenseError("the answer of gh is not a JSON object")
        return _record(answer, self.detect(id))

    def _gh(self, words: list[str]) -> ProgramResult:
        program = find_program(self._project, "gh")
        if not program:
            raise errors.TaskUnreachableError("gh, the command line of GitHub, is not installed")
        return run(self._project, program, words, variables=_QUIET, seconds=SECONDS)


def _known_fields(err: str) -> list[str]:
    """Return the fields that an older `gh` knows, as its error about an unknown field lists them."""
    if "unknown json field" not in err.lower():
        return []
    listed = {line.strip() for line in err.splitlines()}
    return [name for name in FIELDS if name in listed]


def _failure(done: ProgramResult, id: str) -> errors.TraceError:
    if done.code == NOT_LOGGED_IN:
        return errors.TaskRefusedError("gh is not logged in to GitHub", needs="`gh auth login`")
    if "could not resolve to" in done.err.lower():
        return not_found(GitHub.name, id)
    return errors.TaskUnreachableError(f"gh failed: {done.complaint}")


def _record(answer: dict[str, Any], id: str) -> TaskRecord:
    state = str(answer.get("state")).upper()
    canceled = answer.get("stateReason") in ("NOT_PLANNED", "DUPLICATE")
    ended = CANCELED if canceled or (state == "CLOSED" and _is_pull_request(answer)) else DONE
    return TaskRecord.of(
        GitHub.name,
        id,
        title=answer.get("title"),
        state=ended if state in ("CLOSED", "MERGED") else OPEN,
        url=answer.get("url"),
        updated=answer.get("updatedAt"),
        labels=_names(answer.get("labels"), "name"),
        assignee=", ".join(_names(answer.get("assignees"), "login")),
        description=answer.get("body"),
    )


def _is_pull_request(answer: dict[str, Any]) -> bool:
    return "/pull/" in str(answer.get("url"))


def _names(listed: object, field: str) -> list[str]:
    found = listed if isinstance(listed, list) else []
    return [str(each[field]) for each in found if isinstance(each, dict) and field in each]
