"""Jira, over its REST API: version 3 in the cloud, version 2 on servers."""

from __future__ import annotations

import base64
import re
from typing import Any

from trace_store import errors
from trace_store.trajectories.tasks.systems import (
    DONE,
    IN_PROGRESS,
    OPEN,
    LocalProject,
    TaskRecord,
    not_found,
)
from trace_store.trajectories.tasks.web import Service

URL_VARIABLE, EMAIL = "TRACE_JIRA_URL", "JIRA_EMAIL"
CLOUD_TOKEN, SERVER_TOKEN = "JIRA_API_TOKEN", "JIRA_TOKEN"
FIELDS = "summary,description,status,assignee,labels,updated"
_ID = re.compile(r"[A-Z][A-Z0-9_]{1,30}-[0-9]{1,9}")
_LINE_ENDING_NODES = (
    "paragraph",
    "heading",
    "codeBlock",
    "listItem",
    "blockquote",
    "hardBreak",
    "rule",
)
"""Nodes that end a line in a description from the cloud."""
_STATES = {"done": DONE, "indeterminate": IN_PROGRESS}


class Jira:
    """Tasks such as `ENG-456`, or addresses of issues, if the address of a Jira is set."""

    name, is_local = "jira", False

    def __init__(self, project: LocalProject) -> None:
        self._environment = project.environment

    def detect(self, text: str) -> str:
        """Return the id, if the text names an issue."""
        base = self._environment.variables(URL_VARIABLE).get(URL_VARIABLE, "").rstrip("/")
        if not base:
            return ""
        name = text.removeprefix(f"{base}/browse/").removeprefix("jira-").partition("?")[0]
        return name if _ID.fullmatch(name) else ""

    def resolve(self, id: str) -> TaskRecord:
        """Ask Jira for an issue.

        Raises:
            NotFoundError: there is no such issue, or the user may not see it.
            TaskError: Jira is unreachable, refuses, or gave an invalid answer.
            StateError: there is no address or no token.
            InvalidInputError: the address, the token or the id is not valid.
        """
        settings = self._environment.variables(URL_VARIABLE, EMAIL)
        if URL_VARIABLE not in settings:
            raise errors.StateError(
                "Jira needs an address", code=errors.ErrorCode.NO_TASK_KEY, variable=URL_VARIABLE
            )
        if not _ID.fullmatch(id):
            raise errors.InvalidInputError(f"not an issue of Jira: {id[:80]!r}", id=id)
        service = Service("Jira", self._environment, "", URL_VARIABLE)
        if EMAIL in settings:
            key = service.key(CLOUD_TOKEN, SERVER_TOKEN).reveal()
            pair = base64.b64encode(f"{settings[EMAIL]}:{key}".encode()).decode("ascii")
            version, authorization = 3, f"Basic {pair}"
        else:
            key = service.key(SERVER_TOKEN, CLOUD_TOKEN).reveal()
            version, authorization = 2, f"Bearer {key}"
        path = f"/rest/api/{version}/issue/{id}?fields={FIELDS}"
        status, answer = service.ask("GET", path, {"authorization": authorization})
        if status == 404:
            raise not_found("Jira", id)
        if status != 200:
            raise service.refused(f"refuses the request ({status})")
        return _record(answer, id, service.url)


def _record(answer: dict[str, Any], id: str, base: str) -> TaskRecord:
    fields = answer.get("fields")
    if not isinstance(fields, dict):
        raise errors.TaskNonsenseError(f"Jira's answer has no fields ({base})")
    key = answer.get("key", id)
    labels = fields.get("labels")
    described = fields.get("description")
    return TaskRecord.of(
        Jira.name,
        key,
        title=fields.get("summary"),
        state=_STATES.get(_nested_text(fields, "status", "statusCategory", "key"), OPEN),
        url=f"{base}/browse/{key}",
        updated=fields.get("updated"),
        labels=labels if isinstance(labels, list) else (),
        assignee=_nested_text(fields, "assignee", "displayName"),
        description=described if isinstance(described, str) else _plain_text(described).strip(),
    )


def _nested_text(answer: Any, *names: str) -> str:
    for name in names:
        answer = answer.get(name) if isinstance(answer, dict) else None
    return answer if isinstance(answer, str) else ""


def _plain_text(document: Any) -> str:
    """Return the text of an Atlassian document, one line per block."""
    pieces: list[str] = []
    waiting: list[Any] = [document]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            pieces.append(node)
        elif isinstance(node, dict):
            if isinstance(text := node.get("text"), str):
                pieces.append(text)
            if node.get("type") in _LINE_ENDING_NODES:
                waiting.append("\n")
            inside = node.get("content")
            waiting += reversed(inside) if isinstance(inside, list) else ()
    return "".join(pieces)
