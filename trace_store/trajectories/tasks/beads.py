"""Beads: the program `bd`, or without it the export `.beads/issues.jsonl`. Only `bd show` is ever run."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from trace_store import errors
from trace_store.disk.files import read_file
from trace_store.trajectories.tasks.programs import find_program, run
from trace_store.trajectories.tasks.systems import (
    DELETED,
    DONE,
    IN_PROGRESS,
    OPEN,
    LocalProject,
    TaskRecord,
    not_found,
)

SECONDS = 5.0
FOLDER, EXPORT = ".beads", "issues.jsonl"
_USUAL_ID = re.compile(r"bd-[a-z0-9]+(\.[0-9]+)*")
_PREFIXED_ID = re.compile(r"[a-z][a-z0-9_-]*-(?=[a-z]*[0-9])[a-z0-9]+(\.[0-9]+)*")
"""An id with the project's own prefix. A digit is required, since any word with a dash would match otherwise."""
_STATES = {
    "closed": DONE,
    "in_progress": IN_PROGRESS,
    **dict.fromkeys(("tombstone", "deleted"), DELETED),
}
_CONFLICT = re.compile(rb"(?m)^(?:<{7}|={7}|>{7})(?: |$)")


class Beads:
    """Tasks such as `bd-a3f8`; if the project has a folder `.beads`, also with other prefixes."""

    name, is_local = "beads", True

    def __init__(self, project: LocalProject) -> None:
        self._project = project

    def detect(self, text: str) -> str:
        """Return the id, if the text is one."""
        if _USUAL_ID.fullmatch(text):
            return text
        has_beads = self._project.disk.stat(self._path()) is not None
        return text if has_beads and _PREFIXED_ID.fullmatch(text) else ""

    def resolve(self, id: str) -> TaskRecord:
        """Ask `bd` for a task, or read it from the export.

        Raises:
            NotFoundError: there is no such task.
            TaskError: there is neither `bd` nor an export, or the answer is not valid.
            StorageError: the export cannot be read.
        """
        program = find_program(self._project, "bd")
        if not program:
            return _record(
                self._exported(id), id, "bd is not installed, and the export may be outdated"
            )
        # An id never begins with a dash, and not all versions know `--`.
        if id.startswith("-"):
            raise not_found(self.name, id)
        variables = {"BD_JSON_ENVELOPE": "1", "NO_COLOR": "1"}
        done = run(
            self._project, program, ["show", id, "--json"], variables=variables, seconds=SECONDS
        )
        if done.code:
            raise _failure(done.err, id, done.complaint)
        return _record(_task_in(_parsed(done.out), id), id)

    def _path(self, *names: str) -> str:
        return os.path.join(self._project.folder, FOLDER, *names)

    def in_progress(self) -> list[TaskRecord]:
        """Return the tasks in progress in the export; [] if it cannot be read."""
        try:
            lines = (self._export() or b"").splitlines()
        except errors.TraceError:
            return []  # `resolve` reports it
        rows = {str(row["id"]): row for row in map(_parsed, lines) if _has_id(row)}
        working = [row for row in rows.values() if row.get("status") == IN_PROGRESS]
        return [_record(row, str(row["id"])) for row in working if row.get("title")]

    def _export(self) -> bytes | None:
        data = read_file(self._project.disk, self._path(EXPORT))
        if data is not None and _CONFLICT.search(data):
            raise errors.TaskNonsenseError(f"{FOLDER}/{EXPORT} has conflict markers of git")
        return data

    def _exported(self, id: str) -> dict[str, Any]:
        data = self._export()
        if data is None:
            raise errors.TaskUnreachableError(
                f"bd is not installed, and there is no {FOLDER}/{EXPORT}"
            )
        found: dict[str, Any] | None = None
        for line in data.splitlines():
            each = _parsed(line) if id.encode() in line else None
            if isinstance(each, dict) and each.get("id") == id:
                found = each  # a later line is a later version
        if found is None:
            raise not_found(Beads.name, id)
        return found


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _has_id(row: Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("id"), str)


def _task_in(answer: Any, id: str) -> dict[str, Any]:
    """Return the task in an answer: itself, in a list, or in an envelope."""
    found = answer.get("data", answer) if isinstance(answer, dict) else answer
    if isinstance(found, list):
        found = next((each for each in found if isinstance(each, dict)), None)
        if found is None:
            raise not_found(Beads.name, id)
    if not isinstance(found, dict):
        raise errors.TaskNonsenseError("the answer of bd is not a JSON object")
    return found


def _failure(err: str, id: str, complaint: str) -> errors.TraceError:
    """Return the error in the standard error of `bd`: a JSON object among lines of text."""
    found = next((each for each in map(_parsed, err.splitlines()) if isinstance(each, dict)), None)
    found = found or _parsed(err)
    if not isinstance(found, dict):
        return errors.TaskUnreachableError(f"bd failed: {complaint}")
    if found.get("code") == "not_found":
        return not_found(Beads.name, id)
    why = " ".join(str(found.get("error", "")).split())[:200]
    return errors.TaskUnreachableError(f"bd failed: {why}")


def _record(answer: dict[str, Any], id: str, *notes: str) -> TaskRecord:
    labels = answer.get("labels")
    return TaskRecord.of(
        Beads.name,
        answer.get("id", id),
        title=answer.get("title"),
        state=_STATES.get(str(answer.get("status")), OPEN),
        updated=answer.get("updated_at"),
        labels=labels if isinstance(labels, list) else (),
        assignee=answer.get("assignee"),
        description=answer.get("description"),
        external=answer.get("external_ref"),
        notes=notes,
    )
