"""Images and opaque parts: rules common to providers.

Invariant: content that a provider does not accept becomes a note in user and tool messages, so that the model knows
something was there. In the model's own messages it is dropped, so that the model does not learn to write notes.
"""

from __future__ import annotations

import base64
import binascii
from itertools import islice

from trace_store.objects.parts import Image, Opaque, ToolResult
from trace_store.providers.media_facts import (
    ALIASES,
    ANTHROPIC_IMAGES,
    ANTHROPIC_MANY_IMAGES,
    ANY_IMAGE,
    GEMINI_IMAGES,
    MANY_IMAGES,
    OPENAI_IMAGES,
    ImageLimits,
    image_facts,
    image_fault,
    is_locked_pdf,
)
from trace_store.providers.rendering import OPAQUE_LEFT_OUT, UNKNOWN_BLOCK
from trace_store.providers.wire import INNER_DEPTH, parse_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from trace_store.objects.parts import Part
    from trace_store.providers.rendering import Spoken

IMAGE_TYPES = ("image/gif", "image/jpeg", "image/png", "image/webp")
SENDERS = frozenset({"anthropic", "gemini", "openai"})
"""Providers whose own blocks can be sent back to them."""
GEMINI_IMAGE_TYPES = ("image/heic", "image/heif", "image/jpeg", "image/png", "image/webp")
# Precedes an assistant that speaks first, if a provider requires a user there.
BEGINNING = "[The conversation begins with the assistant.]"
_PDF_IN_BASE64 = b"JVBERi"
# First line of the output of a failed call, if a format has no flag for it.
ERROR_LINE = "[tool error]"
_ENDINGS = {
    **{name.partition("/")[2]: name for name in GEMINI_IMAGE_TYPES},
    "jpg": "image/jpeg",
}


def gemini_media(image: Image) -> dict[str, Any] | None:
    """Return an image as a Gemini part, or None if its models do not accept it."""
    if split_image(image) is not None:
        found = typed_image(image, GEMINI_IMAGES)
        if found is None or found[0] not in GEMINI_IMAGE_TYPES:
            return None
        data = base64.b64encode(found[1]).decode()
        return {"inlineData": {"mimeType": found[0], "data": data}}
    if image.url is None or not image.url.startswith(("https://", "http://", "gs://")):
        return None
    media_type = gemini_media_type(image.url)
    return {"fileData": ({"mimeType": media_type} if media_type else {}) | {"fileUri": image.url}}


def split_image(image: Image) -> tuple[str, bytes] | None:
    """Return media type and bytes of an image with data or a `data:` URL, else None."""
    if image.url is None:
        return (image.media_type, image.data) if image.data else None
    if not image.url.startswith("data:"):
        return None
    head, comma, body = image.url[len("data:") :].partition(",")
    if not comma or not head.endswith(";base64"):
        return None
    try:
        return head[: -len(";base64")], base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return None


def anthropic_images(messages: Iterable[Spoken]) -> ImageLimits:
    """Return Anthropic's image limits for a request with these messages."""
    images = (1 for message in messages for part in message.parts for _ in _images_in(part))
    count = sum(islice(images, MANY_IMAGES + 1))
    return ANTHROPIC_MANY_IMAGES if count > MANY_IMAGES else ANTHROPIC_IMAGES


def _images_in(part: Part) -> Iterator[Part]:
    if isinstance(part, Image):
        yield part
    elif isinstance(part, ToolResult):
        for inner in part.content:
            yield from _images_in(inner)
    elif isinstance(part, Opaque) and (opaque_block(part) or {}).get("type") == "image":
        yield part


def typed_image(image: Image, most: ImageLimits = ANY_IMAGE) -> tuple[str, bytes] | None:
    """Return detected media type and bytes of an acceptable image, else None."""
    found = split_image(image)
    facts = None if found is None else image_facts(found[1])
    if found is None or facts is None or image_fault(facts.media_type, found[1], most):
        return None
    return facts.media_type, found[1]


def invalid_image(image: Image, most: ImageLimits = ANY_IMAGE) -> str:
    """Return why a provider rejects an image; "" for a valid one, or one given by URL."""
    found = split_image(image)
    if found is not None:
        # An image of a type that no provider accepts is left out; that is not a fault.
        known = found[0].lower() in {*IMAGE_TYPES, *GEMINI_IMAGE_TYPES, *ALIASES}
        return image_fault(*found, most) if known or image_facts(found[1]) is not None else ""
    return (
        ""
        if image.url is not None and not image.url.startswith("data:")
        else "an image has no data"
    )


def base64_image(image: Image, most: ImageLimits = ANY_IMAGE) -> tuple[str, str] | None:
    """Return media type and base64 of an image that models accept, else None."""
    found = typed_image(image, most)
    if found is None or found[0] not in IMAGE_TYPES:
        return None
    return found[0], base64.b64encode(found[1]).decode()


def web_url(image: Image) -> str | None:
    """Return the URL from which a provider can fetch the image, or None."""
    if image.url is not None and image.url.startswith(("https://", "http://")):
        return image.url
    return None


def image_url(image: Image) -> str | None:
    """Return an image as OpenAI takes it: a `data:` URL, or the web's; None if it does not."""
    encoded = base64_image(image, OPENAI_IMAGES)
    return f"data:{encoded[0]};base64,{encoded[1]}" if encoded else web_url(image)


def system_text(text: str) -> str:
    """Return a late system message as user text."""
    return f"<system>\n{text}\n</system>"


def image_note(image: Image) -> str:
    """Return the note that replaces an image that cannot be shown."""
    found = split_image(image)
    if found is not None:
        return f"[image not shown: {found[0] or 'unknown type'}, {len(found[1])} bytes]"
    if image.url is None:
        return "[image not shown: empty]"
    return f"[image not shown: {image.url[:200]}]"


def opaque_block(part: Opaque) -> dict[str, Any] | None:
    """Return the JSON block in an opaque part, or None if it is not one."""
    block = parse_object(part.data, INNER_DEPTH)
    return block if block is not None and isinstance(block.get("type"), str) else None


_COMPACTIONS = ("compaction", "compaction_summary", "context_compaction")
"""Types of the blocks into which providers compact a conversation, as Anthropic's and OpenAI's schemas name them."""


def is_compaction(part: object) -> bool:
    """Return True for a provider's block of an earlier conversation, which no text can replace."""
    block = opaque_block(part) if isinstance(part, Opaque) else None
    return block is not None and block["type"] in _COMPACTIONS


def block_fault(block: dict[str, Any], most: ImageLimits = ANTHROPIC_IMAGES) -> str:
    """Return the fault of an Anthropic image or document block; "" if there is none."""
    source = block.get("source")
    if block.get("type") not in ("image", "document") or not isinstance(source, dict):
        return ""
    if source.get("type") != "base64":
        return ""
    what = f"the data of a block of type {block['type']}"
    data = source.get("data")
    if not isinstance(data, str) or not data:
        return f"{what} is missing"
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return f"{what} is not base64"
    if block["type"] == "image":
        return image_fault(str(source.get("media_type")), content, most)
    if source.get("media_type") == "application/pdf" and not content.startswith(b"%PDF-"):
        return f"{what} is not a PDF"
    return "a PDF is encrypted" if is_locked_pdf(content) else ""


def document_fault(part: Opaque) -> str:
    """Return the fault of a PDF in a block of any provider; "" if there is none."""
    if _PDF_IN_BASE64 not in part.data:
        return ""
    block = parse_object(part.data, INNER_DEPTH) or {}
    fields = [value for value in block.values() if isinstance(value, dict)]
    for holder in (block, *fields):
        for key in ("data", "file_data"):
            encoded = holder.get(key)
            if isinstance(encoded, str) and is_locked_pdf(_decoded(encoded.rpartition(",")[2])):
                return "a PDF is encrypted"
    return ""


def _decoded(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded)
    except (binascii.Error, ValueError):
        return b""


def left_out_code(part: Opaque) -> str:
    """Return the repair code for a dropped block: a fault if no provider accepts it."""
    return OPAQUE_LEFT_OUT if part.provider in SENDERS else UNKNOWN_BLOCK


def opaque_note(part: Opaque) -> str:
    """Return the note that replaces another provider's block."""
    block = parse_object(part.data) or {}
    kind = block.get("type", next(iter(block), None))
    kind = kind[:80] if isinstance(kind, str) and kind else "content"
    return f"[{kind} not shown: in the form of {part.provider or 'an unknown provider'}]"


def gemini_media_type(url: str) -> str | None:
    """Return the media type of a URL's extension if Gemini accepts it, else None."""
    path = url.partition("?")[0].partition("#")[0]
    return _ENDINGS.get(path.rpartition(".")[2].lower())
