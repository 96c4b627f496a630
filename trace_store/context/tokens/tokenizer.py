"""Tokenizers: from text to a number of tokens, exact under a named encoding.

Rule: counting never raises, whatever the text. It needs no network, no environment variable and no plug-in:
tiktoken is given the ranks that Trace ships.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock

from trace_store import errors
from trace_store.context.tokens.ranks import ENCODINGS, load_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Protocol, TypeGuard
else:
    Protocol = object  # importing typing costs as much as a command

DEFAULT_ENCODING = "o200k_base"

HEURISTIC_ENCODING = "bytes-3.6"
"""UTF-8 bytes over 3.6: against o200k_base on 11,000 real blocks 0.98 in total, 0.76 to 1.32 for 90 % of them."""

PART_CHARACTERS = 1 << 16
"""Longer texts are counted in parts, so that no list of tokens grows with the text."""

_ALIGNMENT = 1 << 12
# Where a text may be cut without changing the count: no pattern of either encoding matches across the
# boundary between a newline and an ASCII letter or digit. The pieces for letters and digits take no newline
# as their first character, those that take newlines end with one, and `\s+(?!\S)` and `\s++$` come after or
# match the same as the pattern for newlines when white space ends with a newline. Nor does one match across
# the boundary between an ASCII letter or digit and a space, which begins a piece or is one, or between an
# ASCII letter and a digit: a piece has letters or digits.
_CUT = r"\n(?=[0-9A-Za-z])|(?<=[0-9A-Za-z])(?= )|(?<=[A-Za-z])(?=[0-9])"
# Good as part of a file name on every system: one case, no device name, no dot at the end.
_NAME = r"(?!(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$))[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9_-])?"


class Tokenizer(Protocol):
    """Counts tokens of text.

    Attributes:
        encoding: what the count is under; a name that can be part of a file name.
        exact: whether a model of that encoding would count the same.
    """

    @property
    def encoding(self) -> str: ...

    @property
    def exact(self) -> bool: ...

    def count(self, text: str) -> int:
        """Return the number of tokens of the text."""


class TiktokenTokenizer:
    """Counts as tiktoken does, with the ranks that Trace ships; they are loaded by the first count."""

    exact = True

    def __init__(self, encoding: str) -> None:
        """Make a tokenizer for an encoding of `ranks.ENCODINGS`."""
        self.encoding = encoding
        self._encode: Callable[[str], list[int]] | None = None
        self._lock = allocate_lock()

    def __repr__(self) -> str:
        return f"TiktokenTokenizer({self.encoding!r})"

    def count(self, text: str) -> int:
        """Return the number of tokens; control tokens such as `<|endoftext|>` are text like any other.

        Equal to tiktoken's own count, except where tiktoken fails (more than about a million characters of
        white space in a row): there the run is counted in slices, which is right to a few tokens.

        Raises:
            StateError: tiktoken is installed but cannot be imported.
            StorageError: the shipped ranks are missing.
            FormatError: the shipped ranks are damaged.
        """
        encode = self._encode or self._load()
        if len(text) <= PART_CHARACTERS:
            return _count(encode, text)
        return sum(_count(encode, part) for part in exact_parts(text))

    def _load(self) -> Callable[[str], list[int]]:
        with self._lock:
            if self._encode is None:
                self._encode = _tiktoken_encode(self.encoding)
            return self._encode


class HeuristicTokenizer:
    """Estimates from the length alone, for installations without tiktoken."""

    encoding = HEURISTIC_ENCODING
    exact = False

    def __repr__(self) -> str:
        return "HeuristicTokenizer()"

    def count(self, text: str) -> int:
        """Return UTF-8 bytes over 3.6, rounded up."""
        return estimate_from_bytes(len(text.encode("utf-8", "surrogatepass")))


class CallableTokenizer:
    """A caller's own way of counting."""

    exact = False

    def __init__(self, name: str, function: Callable[[str], int]) -> None:
        """Wrap a function from text to a number of tokens.

        Args:
            name: names the counts wherever they are kept: small letters, digits, `.`, `_`, `-`, at most
                64. Use another name when the function counts differently.
            function: is given any text, lone surrogates included.

        Raises:
            InvalidInputError: the name is malformed or the name of a built-in encoding.
        """
        import re

        if not re.fullmatch(_NAME, name) or name in ENCODINGS or name == HEURISTIC_ENCODING:
            raise errors.InvalidInputError(f"not a name for a tokenizer: {name[:80]!r}", name=name)
        self.encoding = name
        self._function = function

    def __repr__(self) -> str:
        return f"CallableTokenizer({self.encoding!r})"

    def count(self, text: str) -> int:
        """Return what the function returns.

        Raises:
            InvalidInputError: that is not a whole number, or it is negative.
        """
        count = self._function(text)
        if type(count) is not int or count < 0:
            raise errors.InvalidInputError(
                f"the tokenizer {self.encoding} returned {count!r}, not a number of tokens"
            )
        return count


_TOKENIZERS: dict[str, Tokenizer] = {}


def as_tokenizer(
    tokenizer: Tokenizer | Callable[[str], int] | None,
) -> Tokenizer | None:
    """Return a tokenizer for what a caller gives: one, a plain function (named `custom`), or None.

    Raises:
        InvalidInputError: it is neither.
    """
    if tokenizer is None or _counts(tokenizer):
        return tokenizer
    if callable(tokenizer):
        return CallableTokenizer("custom", tokenizer)
    raise errors.InvalidInputError(f"not a tokenizer: {type(tokenizer).__name__}")


def _counts(given: Any) -> TypeGuard[Tokenizer]:
    return all(hasattr(given, name) for name in ("count", "encoding", "exact"))


def get_tokenizer(name: str = DEFAULT_ENCODING) -> Tokenizer:
    """Return the tokenizer of an encoding, the same one for the whole process.

    Where tiktoken is not installed the result counts heuristically: its `encoding` says so, and so does
    everything that is derived from it.

    Raises:
        InvalidInputError: no such encoding.
    """
    known = _TOKENIZERS.get(name)
    if known is None:
        known = _TOKENIZERS.setdefault(name, _new_tokenizer(name))
    return known


def _new_tokenizer(name: str) -> Tokenizer:
    if name == HEURISTIC_ENCODING:
        return HeuristicTokenizer()
    if name not in ENCODINGS:
        raise errors.InvalidInputError(
            f"unknown encoding {name[:80]!r}: one of {', '.join((*ENCODINGS, HEURISTIC_ENCODING))}",
            name=name,
        )
    return TiktokenTokenizer(name) if _is_installed("tiktoken") else HeuristicTokenizer()


def _is_installed(package: str) -> bool:
    """Tell whether a package can be imported, without importing it; `importlib.util` alone costs 3 ms."""
    if package in sys.modules:
        return sys.modules[package] is not None
    return any(finder.find_spec(package, None) is not None for finder in sys.meta_path)


def estimate_from_bytes(size_bytes: int) -> int:
    """Return the likely number of tokens of that many bytes of UTF-8, rounded up."""
    return (size_bytes * 10 + 35) // 36


def exact_parts(text: str, size: int = PART_CHARACTERS) -> Iterator[str]:
    """Yield the text in parts of `size` characters or somewhat more, whose counts add up to its own.

    A text without a place to cut comes whole.
    """
    import re

    start, place = 0, re.compile(_CUT)
    while len(text) - start > size:
        cut = place.search(text, start + size)
        if cut is None:
            break
        yield text[start : cut.end()]
        start = cut.end()
    yield text[start:]


def _count(encode: Callable[[str], list[int]], text: str) -> int:
    try:
        return len(encode(text))
    except BaseException as error:
        # ValueError since tiktoken 0.13. Before, a panic of the Rust side, which is no Exception.
        panic = type(error).__name__ == "PanicException"
        if not (panic or isinstance(error, ValueError)) or len(text) < 2 * _ALIGNMENT:
            raise
    # The longest tokens are runs of a power of two of the same character, so an aligned cut is the least harm.
    middle = len(text) // 2 // _ALIGNMENT * _ALIGNMENT
    return _count(encode, text[:middle]) + _count(encode, text[middle:])


def _tiktoken_encode(name: str) -> Callable[[str], list[int]]:
    try:
        # Costs 20 ms, and a warm compile counts nothing.
        import tiktoken
    except ImportError as error:
        raise errors.StateError(f"tiktoken is installed but cannot be imported: {error}") from error
    specification = ENCODINGS[name]
    tokens = load_tokens(name)
    # Built directly: tiktoken.get_encoding would download, and a plug-in that registers a name twice
    # breaks every encoding of the process.
    encoding = tiktoken.Encoding(
        name,
        pat_str=specification.pattern,
        mergeable_ranks=dict(zip(tokens, range(len(tokens)), strict=True)),
        special_tokens=specification.special_tokens,
    )

    def encode(text: str) -> list[int]:
        # Not encode_ordinary: that one panics where this one raises.
        return encoding.encode(text, disallowed_special=())

    return encode
