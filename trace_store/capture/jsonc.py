"""JSON as people write it in settings: parsed with positions, so that one entry is changed and nothing else.

An edit inserts or cuts text, in the style of the file. Comments, order, indentation and line ends of the rest stay.
"""

from __future__ import annotations

import json
import re
from typing import Any

from trace_store.base.frozen import value

MAXIMUM_DEPTH = 100
DEFAULT_INDENT = "  "
_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_ATOM = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
_INDENT = re.compile(r"[\[{][^\S\r\n]*\r?\n([ \t]+)\S")


class JsonSyntaxError(ValueError):
    """The text is not JSON; `line` and `column` count from 1."""

    def __init__(self, what: str, text: str, at: int) -> None:
        super().__init__(what)
        self.line = text.count("\n", 0, at) + 1
        self.column = at - text.rfind("\n", 0, at)


@value
class JsonMember:
    """An item of a list, or a member of an object, whose `start` is where its key starts."""

    key: str
    start: int
    node: JsonNode


@value
class JsonNode:
    """A value in a text.

    Attributes:
        kind: `object`, `list` or `atom`.
        start, end: where it is.
        value: the value of an atom.
        members: what an object or a list holds.
    """

    kind: str
    start: int
    end: int
    value: Any
    members: tuple[JsonMember, ...]

    def get(self, key: str) -> JsonNode | None:
        """Return the member of an object; None if there is none."""
        return next((each.node for each in self.members if each.key == key), None)

    def plain(self) -> Any:
        """Return what `json.loads` would return."""
        if self.kind == "object":
            return {each.key: each.node.plain() for each in self.members}
        if self.kind == "list":
            return [each.node.plain() for each in self.members]
        return self.value


class SettingsText:
    """A parsed text and its style.

    Attributes:
        text: the text.
        root: its value.
    """

    def __init__(self, text: str, *, comments: bool) -> None:
        """Parse a text; `comments` says whether comments are allowed.

        Raises:
            JsonSyntaxError: it is not JSON, or an object has a key twice.
        """
        self.text = text
        self._has_comments = comments
        self.root = self._value(self._skip(0), 0)
        end = self._skip(self.root.end)
        if end != len(text):
            raise JsonSyntaxError("text after the end of the value", text, end)
        self._newline = "\r\n" if "\r\n" in text else "\n"
        found = _INDENT.search(text)
        self._unit = found[1] if found is not None else DEFAULT_INDENT
        self._has_lines = "\n" in text[self.root.start : self.root.end]
        self._is_tight = '":' in text and '": ' not in text

    # --- parsing

    def _skip(self, at: int) -> int:
        while True:
            match = _SPACE.match(self.text, at)
            at = at if match is None else match.end()
            comment = _COMMENT.match(self.text, at)
            if comment is None:
                return at
            if not self._has_comments:
                raise JsonSyntaxError("comments are not allowed here", self.text, at)
            at = comment.end()

    def _value(self, at: int, depth: int) -> JsonNode:
        start = self.text[at : at + 1]
        if depth > MAXIMUM_DEPTH:
            raise JsonSyntaxError("it is nested too deeply", self.text, at)
        if start and start in "{[":
            return self._container(at, depth)
        match = (_STRING if start == '"' else _ATOM).match(self.text, at)
        try:
            if match is not None:
                return JsonNode("atom", at, match.end(), json.loads(match[0]), ())
        except ValueError:
            pass
        raise JsonSyntaxError("no value" if start else "the end is missing", self.text, at)

    def _container(self, at: int, depth: int) -> JsonNode:
        text, is_object = self.text, self.text[at] == "{"
        kind, close = ("object", "}") if is_object else ("list", "]")
        members: list[JsonMember] = []
        keys: set[str] = set()
        here = self._skip(at + 1)
        if text[here : here + 1] == close:
            return JsonNode(kind, at, here + 1, None, ())
        while True:
            start, key = here, ""
            if is_object:
                named = self._value(here, depth + 1)
                key, here = named.value, self._skip(named.end)
                if not isinstance(key, str) or text[here : here + 1] != ":":
                    raise JsonSyntaxError('no `"key":`', text, start)
                if key in keys:
                    raise JsonSyntaxError(f"the key {key!r} appears twice", text, start)
                keys.add(key)
                here = self._skip(here + 1)
            node = self._value(here, depth + 1)
            members.append(JsonMember(key, start, node))
            here = self._skip(node.end)
            mark = text[here : here + 1]
            if mark == close:
                return JsonNode(kind, at, here + 1, None, tuple(members))
            if mark != ",":
                raise JsonSyntaxError(f"no `,` or `{close}`", text, here)
            here = self._skip(here + 1)

    # --- editing

    def append(self, node: JsonNode, given: Any, key: str = "") -> str:
        """Return the text with one more value at the end of a list, or member at the end of an object."""
        text, close = self.text, node.end - 1
        has_lines = "\n" in text[node.start : node.end]
        if not node.members:
            has_lines = has_lines or self._has_lines or node is self.root
        if not has_lines:
            body = self._render(given, key, None)
            end = node.members[-1].node.end if node.members else close
            comma = "" if not node.members else "," if self._is_tight else ", "
            return text[:end] + comma + body + text[end:]
        indent = self._indent_in(node)
        body = self._newline + indent + self._render(given, key, indent)
        last = node.members[-1].node.end if node.members else node.start + 1
        at = self._end_of_comments(last, close)
        rest = text[at:]
        if "\n" not in text[at:close]:
            rest = self._newline + self._indent_at(node.start) + text[close:]
        return text[:last] + ("," if node.members else "") + text[last:at] + body + rest

    def replace(self, node: JsonNode, given: Any) -> str:
        """Return the text with another value in place of one."""
        has_lines = "\n" in self.text[node.start : node.end]
        indent = self._indent_at(node.start) if has_lines else None
        return self.text[: node.start] + self._render(given, "", indent) + self.text[node.end :]

    def remove(self, node: JsonNode, number: int) -> str:
        """Return the text without a member of an object or a list."""
        text, members = self.text, node.members
        start, end = members[number].start, members[number].node.end
        if len(members) == 1:
            before = self._end_of_comments(node.start + 1, start)
            after = node.end - 1
            if before != node.start + 1 or self._end_of_comments(end, after) != end:
                return text[:before] + text[end:]
            return text[: node.start + 1] + text[after:]
        if number == 0:
            comma = self._skip(end)
            following = members[1].start
            to = (
                following if self._end_of_comments(comma + 1, following) == comma + 1 else comma + 1
            )
            return text[:start] + text[to:]
        comma = self._skip(members[number - 1].node.end)
        before = self._end_of_comments(comma + 1, start)
        if number < len(members) - 1:
            return text[:before] + text[self._skip(end) + 1 :]
        return text[:comma] + text[comma + 1 : before] + text[end:]

    def _end_of_comments(self, at: int, limit: int) -> int:
        """Return the end of the last comment between two places, or the first place."""
        end = at
        while at < limit:
            match = _SPACE.match(self.text, at)
            at = at if match is None else match.end()
            comment = _COMMENT.match(self.text, at)
            if comment is None or at >= limit:
                return end
            at = end = comment.end()
        return end

    def _render(self, given: Any, key: str, indent: str | None) -> str:
        """Return the text of a value, after its key if it has one; on one line without `indent`."""
        tight = (",", ":") if self._is_tight else (", ", ": ")
        name = "" if not key else json.dumps(key, ensure_ascii=False) + tight[1]
        if indent is None:
            return name + json.dumps(given, ensure_ascii=False, separators=tight)
        body = json.dumps(given, ensure_ascii=False, indent=self._unit)
        return name + body.replace("\n", self._newline + indent)

    def _indent_in(self, node: JsonNode) -> str:
        """Return the indentation of the items of an object or a list."""
        if node.members and self._starts_line(node.members[0].start):
            return self._indent_at(node.members[0].start)
        return self._indent_at(node.start) + self._unit

    def _starts_line(self, at: int) -> bool:
        line = self.text.rfind("\n", 0, at) + 1
        return not self.text[line:at].strip()

    def _indent_at(self, at: int) -> str:
        """Return the indentation of the line of a place."""
        line = self.text.rfind("\n", 0, at) + 1
        return self.text[line : len(self.text) - len(self.text[line:].lstrip(" \t"))]
