"""Parts of a message, provider-neutral: what a model is shown, with its content at hand.

Rule: plain values with content. How they are stored is `message.py`'s business.
"""

from __future__ import annotations

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trace_store.objects.address import Address


class Part:
    """What a message is made of. Two parts are equal when they say the same."""

    __slots__: tuple[str, ...] = ()
    type = ""
    _texts: tuple[str, ...] = ()
    """Fields that must be text."""

    def problem(self) -> str:
        """Return what is wrong with the type of a field, in words, or nothing."""
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
    """Text. It may hold lone surrogates, as JSON transcripts do."""

    __slots__ = ("text",)
    type = "text"
    _texts = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Image(Part):
    """An image: its bytes, or the URL where the provider finds it."""

    __slots__ = ("data", "media_type", "url")
    type = "image"
    _texts = ("media_type",)

    def __init__(
        self, media_type: str = "", data: bytes | None = None, url: str | None = None
    ) -> None:
        self.media_type = media_type
        self.data = data
        self.url = url

    def problem(self) -> str:
        """Return what is wrong with the type of a field, in words, or nothing."""
        if self.data is not None and not isinstance(self.data, bytes | bytearray | memoryview):
            return f"data of Image is {type(self.data).__name__}, not bytes"  # type: ignore[unreachable]
        if self.url is not None and not isinstance(self.url, str):
            return f"url of Image is {type(self.url).__name__}, not text"  # type: ignore[unreachable]
        return super().problem()


class ToolCall(Part):
    """A model's call of a tool.

    Attributes:
        id: the provider's id, by which the result is paired.
        name: the tool.
        arguments: the text as the model wrote it; JSON, unless `format` is "text". A mapping becomes compact JSON.
    """

    __slots__ = ("arguments", "format", "id", "name")
    type = "tool_call"
    _texts = ("id", "name", "arguments", "format")

    def __init__(
        self, id: str, name: str, arguments: str | Mapping[str, object], format: str = "json"
    ) -> None:
        if not isinstance(arguments, str):
            import json  # only here, since plumbing has no use for it

            try:
                arguments = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
            except TypeError as error:
                raise errors.InvalidMessageError(f"arguments of ToolCall: {error}") from None
        self.id = id
        self.name = name
        self.arguments: str = arguments
        self.format = format


class ToolResult(Part):
    """What a tool answered.

    Attributes:
        call_id: the id of the call it answers.
        content: text, images and opaque parts.
        is_error: whether the tool failed.
        call: the address of the message that holds the call, once it is known. Results that differ in it alone are
            equal: no model is shown it.
    """

    __slots__ = ("call", "call_id", "content", "is_error")
    type = "tool_result"
    _texts = ("call_id",)

    def _values(self) -> tuple[object, ...]:
        return (self.call_id, self.content, self.is_error)

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
            found = type(content).__name__
            raise errors.InvalidMessageError(
                f"content of ToolResult is {found}, not text or a list of parts"
            )
        self.content: tuple[Part, ...] = tuple(content)
        self.is_error = is_error
        self.call = call

    def problem(self) -> str:
        """Return what is wrong with the type of a field, in words, or nothing."""
        for part in self.content:
            if not isinstance(part, Part):
                return f"content of ToolResult holds {type(part).__name__}, not parts"  # type: ignore[unreachable]
            if found := part.problem():
                return found
        return super().problem()


class Reasoning(Part):
    """A model's reasoning. The signature is opaque and bound to the model that made it."""

    __slots__ = ("signature", "text")
    type = "reasoning"
    _texts = ("text",)

    def __init__(self, text: str, signature: str | None = None) -> None:
        self.text = text
        self.signature = signature

    def problem(self) -> str:
        """Return what is wrong with the type of a field, in words, or nothing."""
        if self.signature is not None and not isinstance(self.signature, str):
            return f"signature of Reasoning is {type(self.signature).__name__}, not text"  # type: ignore[unreachable]
        return super().problem()


class Opaque(Part):
    """Bytes in one provider's own form (a JSON block), kept as they came. Text becomes UTF-8."""

    __slots__ = ("data", "provider")
    type = "opaque"
    _texts = ("provider",)

    def __init__(self, provider: str, data: bytes | str) -> None:
        self.provider = provider
        self.data: bytes = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data

    def problem(self) -> str:
        """Return what is wrong with the type of a field, in words, or nothing."""
        if not isinstance(self.data, bytes | bytearray | memoryview):
            return f"data of Opaque is {type(self.data).__name__}, not bytes or text"  # type: ignore[unreachable]
        return super().problem()
