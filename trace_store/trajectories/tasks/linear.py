"""Linear, over its GraphQL API."""

from __future__ import annotations

import re
from typing import Any

from trace_store import errors
from trace_store.llm.settings import masked
from trace_store.trajectories.tasks.systems import (
    CANCELED,
    DONE,
    IN_PROGRESS,
    OPEN,
    LocalProject,
    TaskRecord,
    not_found,
)
from trace_store.trajectories.tasks.web import Service

URL, URL_VARIABLE, KEY_VARIABLE = "https://api.linear.app", "TRACE_LINEAR_URL", "LINEAR_API_KEY"
QUERY = """query($id: String!) { issue(id: $id) {
  identifier title description url updatedAt
  state { type } assignee { displayName } labels { nodes { name } }
} }"""
_ID = re.compile(r"[A-Z][A-Z0-9]{0,9}-[0-9]{1,9}")
_ADDRESS = re.compile(r"https://linear\.app/[\w-]+/issue/([A-Za-z][A-Za-z0-9]{0,9}-[0-9]{1,9})\b.*")
_OAUTH = "lin_oauth_"
_STATES = {
    "completed": DONE,
    "canceled": CANCELED,
    "duplicate": CANCELED,
    "started": IN_PROGRESS,
}


class Linear:
    """Tasks such as `ENG-456` if a key of Linear is set, or addresses of issues."""

    name, is_local = "linear", False

    def __init__(self, project: LocalProject) -> None:
        self._environment = project.environment

    def detect(self, text: str) -> str:
        """Return the id, if the text names an issue."""
        if found := _ADDRESS.fullmatch(text):
            return found[1].upper()
        has_key = KEY_VARIABLE in self._environment.variables(KEY_VARIABLE)
        return text if has_key and _ID.fullmatch(text) else ""

    def resolve(self, id: str) -> TaskRecord:
        """Ask Linear for an issue.

        Raises:
            NotFoundError: there is no such issue.
            TaskError: Linear is unreachable, refuses, or gave an invalid answer.
            StateError: there is no key.
            InvalidInputError: the address or the key is not valid.
        """
        service = Service("Linear", self._environment, URL, URL_VARIABLE)
        key = service.key(KEY_VARIABLE)
        secret = key.reveal()
        authorization = f"Bearer {secret}" if secret.startswith(_OAUTH) else secret
        status, answer = service.ask(
            *("POST", "/graphql", {"authorization": authorization}),
            {"query": QUERY, "variables": {"id": id}},
        )
        if problems := answer.get("errors"):
            code, message = _problem(problems)
            if "not found" in message.lower():
                raise not_found("Linear", id)
            raise service.refused(f"refuses the request: {masked(message or code, key)}")
        if status != 200:
            raise errors.TaskUnreachableError(f"{service.url} does not answer as Linear ({status})")
        data = answer.get("data")
        issue = data.get("issue") if isinstance(data, dict) else None
        if not isinstance(issue, dict):
            raise not_found("Linear", id)
        return _record(issue, id)


def _problem(answer: Any) -> tuple[str, str]:
    """Return the code and the message of the first error of a GraphQL answer."""
    first = answer[0] if isinstance(answer, list) else answer
    if not isinstance(first, dict):
        return "", "no reason is given"
    more = first.get("extensions")
    code = str(more.get("code", "")) if isinstance(more, dict) else ""
    return code, " ".join(str(first.get("message", "")).split())[:160]


def _field(answer: Any, name: str) -> Any:
    return answer.get(name) if isinstance(answer, dict) else None


def _record(issue: dict[str, Any], id: str) -> TaskRecord:
    nodes = _field(issue.get("labels"), "nodes")
    return TaskRecord.of(
        Linear.name,
        issue.get("identifier", id),
        title=issue.get("title"),
        state=_STATES.get(str(_field(issue.get("state"), "type")), OPEN),
        url=issue.get("url"),
        updated=issue.get("updatedAt"),
        labels=[_field(each, "name") for each in nodes] if isinstance(nodes, list) else (),
        assignee=_field(issue.get("assignee"), "displayName"),
        description=issue.get("description"),
    )
