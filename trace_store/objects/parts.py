"""Parts of a message, provider-neutral: what a model is shown, with its content at hand.

Rule: plain values with content. How they are stored is `message.py`'s business.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Part:
    """What a message is made of. Two parts are equal when they say the same."""

    __slots__: tuple[str, ...] = ()
    type = ""

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

    def __init__(self, text: str) -> None:
        self.text = text


class Image(Part):
    """An image: its bytes, or the URL where the provider finds it."""

    __slots__ = ("data", "media_type", "url")
    type = "image"

    def __init__(
        self, media_type: str = "", data: bytes | None = None, url: str | None = None
    ) -> None:
        self.media_type = media_type
        self.data = data
        self.url = url


class ToolCall(Part):
    """A model's call of a tool.

    Attributes:
        id: the provider's id, by which the result is paired.
        name: the tool.
        arguments: the text as the model wrote it; JSON, unless `format` is "text". A mapping becomes compact JSON.
    """

    __slots__ = ("arguments", "format", "id", "name")
    type = "tool_call"

    def __init__(
        self, id: str, name: str, arguments: str | Mapping[str, object], format: str = "json"
    ) -> None:
        if not isinstance(arguments, str):
            import json  # only here, since plumbing has no use for it

            arguments = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
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
    """

    __slots__ = ("call_id", "content", "is_error")
    type = "tool_result"

    def __init__(self, call_id: str, content: str | Sequence[Part], is_error: bool = False) -> None:
        self.call_id = call_id
        self.content: tuple[Part, ...] = (
            (Text(content),) if isinstance(content, str) else tuple(content)
        )
        self.is_error = is_error


class Reasoning(Part):
    """A model's reasoning. The signature is opaque and bound to the model that made it."""

    __slots__ = ("signature", "text")
    type = "reasoning"

    def __init__(self, text: str, signature: str | None = None) -> None:
        self.text = text
        self.signature = signature


class Opaque(Part):
    """Bytes in one provider's own form (a JSON block), kept as they came."""

    __slots__ = ("data", "provider")
    type = "opaque"

    def __init__(self, provider: str, data: bytes) -> None:
        self.provider = provider
        self.data = data
