"""The placeholder of a removed message, such as `[removed: config.py, 847 tokens, 8a3fe622.3]`.

Rule: the text depends on the message as it was created and on nothing else: not on later edits, other messages or the
encoding. So a provider's cached prefix stays valid. It has at most 20 tokens, and the subject is cut to fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trace_store import errors
from trace_store.context.content import argument_of
from trace_store.context.tokens.tokenizer import estimate_from_bytes
from trace_store.objects.address import RESULT, Address
from trace_store.objects.content import content_size, read_content
from trace_store.providers.media_tokens import CLAUDE

Read = Callable[[bytes], bytes]

GHOST_TOKENS = 20
"""Maximum length of a placeholder."""
_FRAME_TOKENS = 8
"""Tokens of `[removed: , 1 tokens, ]` without the number."""
_IMAGE_TOKENS = 1500
_PATHS = ("file_path", "filePath", "path", "notebook_path", "filename", "file")
_COMMANDS = ("command", "cmd")
_HEX_TOKENS = 0, 1, 1, 2, 3, 3, 4, 5, 5
"""Maximum tokens of a run of that many letters from a to f: every two of them are one token."""
_LETTERS_OF_TOKEN = 3
_SUBJECT_CHARACTERS = 40
_READ_BYTES = 400
"""The first words are sought in this many bytes of a text."""
_FIRST_WORDS = re.compile(r"[A-Za-z][^\n\r]*")


def ghost_text(address: tuple[bytes, int], stored: Mapping[str, Any], read: Read) -> str:
    """Return the placeholder of a removed message: its subject, estimated tokens, and the address to restore.

    The short form `[removed 8a3fe622.3]` is for a message whose content was purged or cannot be read.

    Args:
        address: the message's address.
        stored: the message in stored form, as it was created.
        read: returns an object's bytes by id.
    """
    name = Address(*address).short(8)
    try:
        count = estimated_tokens(stored, read)
        subject = _subject(stored, read)
    except (errors.NotFoundError, errors.FormatError):
        return f"[removed {name}]"
    room = GHOST_TOKENS - _FRAME_TOKENS - _number_tokens(str(count)) - _address_tokens(name)
    subject = _cut(subject, room)
    said = f"{subject}, " if subject else ""
    return f"[removed: {said}{count} token{'' if count == 1 else 's'}, {name}]"


def estimated_tokens(stored: Mapping[str, Any], read: Read) -> int:
    """Return the estimated tokens of a stored message, by the size of its content; no tokenizer is used.

    Raises:
        ObjectNotFoundError: content is missing or purged.
        CorruptObjectError: content is damaged.
    """
    return sum(_part_tokens(part, read) for part in stored["parts"])


def _part_tokens(part: Mapping[str, Any], read: Read) -> int:
    if part["type"] == RESULT:
        return sum(_part_tokens(inner, read) for inner in part["parts"])
    if part["type"] == "image":
        return (
            CLAUDE.image_tokens(read_content(part["blob"], read))
            if "blob" in part
            else _IMAGE_TOKENS
        )
    return estimate_from_bytes(content_size(part["blob"], read)) if "blob" in part else 0


def _subject(stored: Mapping[str, Any], read: Read) -> str:
    """Return the file or command of the first tool call, else the first words of the first text with some."""
    parts = stored["parts"]
    for part in parts:
        if part["type"] == "tool_call":
            arguments = read_content(part["blob"], read).decode("utf-8", "replace")
            return _subject_of_call(str(part["name"]), arguments)
    texts = [
        inner for part in parts for inner in (part["parts"] if part["type"] == RESULT else [part])
    ]
    for part in texts:
        if part["type"] == "text" and "blob" in part:
            start = read_content(part["blob"], read)[:_READ_BYTES].decode("utf-8", "replace")
            if words := _FIRST_WORDS.search(start):
                return words[0]
    return "result" if any(part["type"] == RESULT for part in parts) else ""


def _subject_of_call(name: str, arguments: str) -> str:
    path = argument_of(arguments, _PATHS)
    if path:
        return _base_name(path) or name
    words = argument_of(arguments, _COMMANDS).split()
    while words[:1] == ["cd"] and "&&" in words[:-1]:
        words = words[words.index("&&") + 1 :]
    if not words:
        return name
    second = words[1] if len(words) > 1 and words[1].isalpha() else ""
    return f"{_base_name(words[0])} {second}".strip() or name


def _base_name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]


def _cut(subject: str, room: int) -> str:
    """Return the start of a subject that has at most `room` tokens in every encoding, without unusual characters."""
    plain = "".join(c for c in subject[:_SUBJECT_CHARACTERS] if c.isascii() and _is_plain(c))
    # A number or a sign does not merge with the space before it.
    room -= not plain.strip()[:1].isalpha()
    kept = ""
    for piece in _pieces(plain.strip()):
        room -= _piece_tokens(piece)
        if room < 0:
            break
        kept += piece
    return kept.rstrip(" ._+-")


def _is_plain(character: str) -> bool:
    return character.isalnum() or character in " ._+-"


def _pieces(text: str) -> Iterator[str]:
    """Split a text where every encoding splits it, or more often: numbers, and words with preceding characters."""
    at = 0
    while at < len(text):
        end = at
        if text[at].isdigit():
            while text[end : end + 1].isdigit() and end < at + 3:
                end += 1
        else:
            end += not text[at].isalpha()
            while text[end : end + 1].isupper():
                end += 1
            while text[end : end + 1].islower():
                end += 1
        yield text[at:end]
        at = end


def _piece_tokens(piece: str) -> int:
    """Return a rough maximum of a piece's tokens; capitals and consonants raise it."""
    upper, lower = sum(map(str.isupper, piece)), sum(map(str.islower, piece))
    if upper > 1:
        return -(-upper * 2 // 3) + -(-lower // _LETTERS_OF_TOKEN)
    size = 2 if lower + upper > 2 and not set("aeiouy") & set(piece.lower()) else _LETTERS_OF_TOKEN
    return -(-(upper + lower) // size) or 1


def _number_tokens(digits: str) -> int:
    return -(-len(digits) // 3)


def _address_tokens(name: str) -> int:
    """Return the maximum tokens of ` 8a3fe622.3`."""
    birth, _, number = name.partition(".")
    tokens = birth[0].isdigit() + 1 + _number_tokens(number)
    at = 0
    while at < len(birth):
        end, is_number = at, birth[at].isdigit()
        while end < len(birth) and birth[end].isdigit() == is_number:
            end += 1
        tokens += _number_tokens(birth[at:end]) if is_number else _HEX_TOKENS[end - at]
        at = end
    return tokens
