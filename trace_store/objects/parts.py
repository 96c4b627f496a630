"""Message parts, independent of providers.

Rule: plain values with their content. `message.py` knows their stored form.
"""

from __future__ import annotations

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Self

    from trace_store.objects.address import Address


class Part:
    """Base class of message parts; equal if all fields are equal."""

    __slots__: tuple[str, ...] = ()
    type = ""
    _texts: tuple[str, ...] = ()
    """Fields that must be text."""
    _content = ""
    """The field with the content."""
    _names: tuple[str, ...] = ()
    """Fields that must be text and are not the content."""

    @property
    def raw(self) -> bytes:
        """The content as bytes: text and arguments as UTF-8, data as it is, and a result's contents together."""
        found: str | bytes = getattr(self, self._content, None) or b""
        return found.encode("utf-8", "surrogatepass") if isinstance(found, str) else bytes(found)

    def names(self) -> list[str]:
        """Return the texts of the part beside its content, such as ids and names."""
        return list(map(self.__getattribute__, self._names))

    def renamed(self, change: Callable[[str], str]) -> Self:
        """Return the part with each text of `names` replaced by what a function returns for it."""
        part = object.__new__(type(self))
        for field in self.__slots__:
            setattr(part, field, getattr(self, field))
        for field in self._names:
            setattr(part, field, change(getattr(self, field)))
        return part

    def problem(self) -> str:
        """Return a description of a field with a wrong type, or ""."""
        for name in self._texts:
            value = getattr(self, name)
            if not isinstance(value, str):
                return f"{name} of {type(self).__name__} is {type(value).__name__}, not text"
        return ""

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Part)
            and type(other) is type(self)
            and other._values() == self._values()
        )

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"


class Text(Part):
    """Text. It may have lone surrogates, as in JSON transcripts."""

    __slots__: tuple[str, ...] = ("text",)
    type = "text"
    _texts: tuple[str, ...] = ("text",)
    _content = "text"

    def __init__(self, text: str) -> None:
        self.text = text


class Data(Text):
    """A JSON object with the name of its schema. Whatever reads text reads it as JSON text, so models see that.

    Attributes:
        text: the object as canonical JSON: keys sorted, no spaces, no escapes but those that JSON needs.
        schema: what the object is, such as `example.invoice/1`.
    """

    __slots__ = ("schema",)
    type = "data"
    _texts = ("text", "schema")
    _names = ("schema",)

    def __init__(self, schema: str, data: Mapping[str, Any] | str) -> None:
        """Keep an object under the name of its schema; text is taken as the canonical JSON of one.

        Raises:
            InvalidMessageError: the data is not a JSON object.
        """
        self.schema = schema
        self.text = data if isinstance(data, str) else _canonical_json(data)

    @property
    def value(self) -> dict[str, Any]:
        """The object, a new one at each access.

        Raises:
            CorruptObjectError: the text is not that of a JSON object, for example after a purge.
        """
        import json

        try:
            found = json.loads(self.text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise errors.CorruptObjectError(f"a data part of {self.schema!r} is no JSON object")
        return found

    @property
    def indented(self) -> str:
        """The object as JSON for people; the text as it is, if it is no JSON object."""
        import json

        try:
            return json.dumps(self.value, ensure_ascii=False, indent=2)
        except errors.CorruptObjectError:
            return self.text

    def problem(self) -> str:
        """Return a description of a field with a wrong type, or ""."""
        return super().problem() or ("" if self.schema else "schema of Data is empty")

    def _values(self) -> tuple[object, ...]:
        return self.schema, self.text

    def __repr__(self) -> str:
        return f"Data({self.schema!r}, {self.text!r})"


_ESCAPES = {
    **{code: f"\\u{code:04x}" for code in range(0x20)},
    **{
        ord(character): f"\\{letter}"
        for character, letter in zip('"\\\b\f\n\r\t', '"\\bfnrt', strict=True)
    },
}


def _canonical_json(data: object) -> str:
    if not isinstance(data, dict):
        raise errors.InvalidMessageError(f"the data of Data is {type(data).__name__}, not a dict")
    try:
        return _json(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.InvalidMessageError(f"the data of Data is no JSON object: {error}") from None


def _json(value: object) -> str:
    """Return a value as `json.dumps` writes it, sorted and without spaces; importing json takes as long as a commit."""
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        if value - value != 0:  # infinite, or not a number
            raise ValueError(f"{value} is not a JSON number")
        return float.__repr__(value)
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_json, value))}]"
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("its keys are not all text")
        return f"{{{','.join(f'{_json(key)}:{_json(value[key])}' for key in sorted(value))}}}"
    raise TypeError(f"{type(value).__name__} is not a JSON value")


class Image(Part):
    """An image: its bytes, or a URL."""

    __slots__ = ("data", "media_type", "url")
    type = "image"
    _texts = ("media_type",)
    _names = ("media_type",)
    _content = "data"

    def __init__(
        self, media_type: str = "", data: bytes | None = None, url: str | None = None
    ) -> None:
        self.media_type = media_type
        self.data = data
        self.url = url

    def problem(self) -> str:
        """Return a description of a field with a wrong type, or ""."""
        if self.data is not None and not isinstance(self.data, bytes | bytearray | memoryview):
            return f"data of Image is {type(self.data).__name__}, not bytes"  # type: ignore[unreachable]
        if self.url is not None and not isinstance(self.url, str):
            return f"url of Image is {type(self.url).__name__}, not text"  # type: ignore[unreachable]
        return super().problem()


class ToolCall(Part):
    """A tool call of a model.

    Attributes:
        id: the provider's id, which the result refers to.
        name: the tool.
        arguments: JSON as the model wrote it, or text if `format` is "text". A mapping becomes compact JSON.
    """

    __slots__ = ("arguments", "format", "id", "name")
    type = "tool_call"
    _texts = ("id", "name", "arguments", "format")
    _names = ("id", "name", "format")
    _content = "arguments"

    def __init__(
        self, id: str, name: str, arguments: str | Mapping[str, object], format: str = "json"
    ) -> None:
        if not isinstance(arguments, str):
            import json  # plumbing does not need it

            try:
                arguments = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
            except TypeError as error:
                raise errors.InvalidMessageError(f"arguments of ToolCall: {error}") from None
        self.id = id
        self.name = name
        self.arguments: str = arguments
        self.format = format


class ToolResult(Part):
    """The result of a tool call.

    Attributes:
        call_id: the id of the call.
        content: text, images and opaque parts.
        is_error: whether the tool failed.
        call: the address of the message with the call, if known. Ignored by equality, because no model sees it.
    """

    __slots__ = ("call", "call_id", "content", "is_error")
    type = "tool_result"
    _texts = ("call_id",)
    _names = ("call_id",)

    def _values(self) -> tuple[object, ...]:
        return (self.call_id, self.content, self.is_error)

    def names(self) -> list[str]:
        """Return the id of the call, and the texts of the contents beside their own content."""
        names = [self.call_id]
        for part in self.content:
            if type(part) is not Text:
                names += part.names()
        return names

    def renamed(self, change: Callable[[str], str]) -> ToolResult:
        """Return the result with each text of `names` replaced by what a function returns for it."""
        content = [part.renamed(change) for part in self.content]
        return ToolResult(change(self.call_id), content, self.is_error, call=self.call)

    def __init__(
        self,
        call_id: str,
        content: str | Part | Sequence[Part],
        is_error: bool = False,
        *,
        call: Address | None = None,
    ) -> None:
        self.call_id = call_id
        if isinstance(content, str):
            content = (Text(content),)
        elif isinstance(content, Part):
            content = (content,)
        elif not isinstance(content, list | tuple):
            actual = type(content).__name__
            raise errors.InvalidMessageError(
                f"content of ToolResult is {actual}, not text or a list of parts"
            )
        self.content: tuple[Part, ...] = tuple(content)
        self.is_error = is_error
        self.call = call

    @property
    def raw(self) -> bytes:
        """The contents as bytes, together."""
        return b"".join(part.raw for part in self.content)

    @property
    def text(self) -> str:
        """The texts of the content, joined by line breaks."""
        return "\n".join(part.text for part in self.content if isinstance(part, Text))

    def problem(self) -> str:
        """Return a description of a field with a wrong type, or ""."""
        for part in self.content:
            if not isinstance(part, Part):
                return f"content of ToolResult has {type(part).__name__}, not parts"  # type: ignore[unreachable]
            if problem := part.problem():
                return problem
        return super().problem()


class Reasoning(Part):
    """A model's reasoning. The signature is opaque and bound to the model."""

    __slots__ = ("signature", "text")
    type = "reasoning"
    _texts = ("text",)
    _content = "text"

    def __init__(self, text: str, signature: str | None = None) -> None:
        self.text = text
        self.signature = signature

    def problem(self) -> str:
        """Return a description of a field with a wrong type, or ""."""
        if self.signature is not None and not isinstance(self.signature, str):
            return f"signature of Reasoning is {type(self.signature).__name__}, not text"  # type: ignore[unreachable]
        return super().problem()


class Opaque(Part):
    """A block in a provider's own format, preserved as bytes. Text becomes UTF-8."""

    __slots__ = ("data", "provider")
    type = "opaque"
    _texts = ("provider",)
    _names = ("provider",)
    _content = "data"

    def __init__(self, provider: str, data: bytes | str) -> None:
        self.provider = provider
        self.data: bytes = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data

    def problem(self) -> str:
        """Return a description of a field with a wrong type, or ""."""
        if not isinstance(self.data, bytes | bytearray | memoryview):
            return f"data of Opaque is {type(self.data).__name__}, not bytes or text"  # type: ignore[unreachable]
        return super().problem()
