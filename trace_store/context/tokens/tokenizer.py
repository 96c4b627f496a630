"""Tokenizers, which count the tokens of text, and the byte-pair ranks of OpenAI's encodings.

Counting works for any text. It needs no network, environment variable or plug-in: tiktoken gets the ranks that Trace
ships. A data file is a zstd frame with a checksum. It contains a msgpack array of the tokens' bytes in rank order.
`tools/build_token_data.py` writes it from the official `.tiktoken` file, whose SHA-256 is kept here;
docs/design/003-token-data.md explains the format.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType
    from typing import Any, Protocol, TypeGuard
else:
    Protocol = object  # importing typing is expensive

MAXIMUM_TOKENS = 1 << 20
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"

DEFAULT_ENCODING = "o200k_base"

HEURISTIC_ENCODING = "bytes-3.6"
"""UTF-8 bytes / 3.6: 0.98 of o200k_base in total over 11,000 real blocks, 0.76 to 1.32 for 90 % of them."""

PART_CHARACTERS = 1 << 16
"""Longer texts are counted in parts, so that memory does not grow with the text."""

_ALIGNMENT = 1 << 12
# Where a text can be split without changing the count. No pattern of either encoding matches across the
# boundary between a newline and an ASCII letter or digit: pieces of letters and digits do not start with a
# newline, pieces with newlines end with one, and `\s+(?!\S)` and `\s++$` come after the pattern for newlines,
# or match the same, if white space ends with a newline. No pattern matches across the boundary between an
# ASCII letter or digit and a space, which starts a piece, or between an ASCII letter and a digit, since no
# piece has both.
_CUT = r"\n(?=[0-9A-Za-z])|(?<=[0-9A-Za-z])(?= )|(?<=[A-Za-z])(?=[0-9])"
# Valid in file names on every system: lower case, not a device name, no dot at the end.
_NAME = r"(?!(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$))[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9_-])?"

_TOKENIZERS: dict[str, Tokenizer] = {}


class EncodingSpecification:
    """The definition of an encoding, apart from its ranks.

    Attributes:
        name: OpenAI's name of the encoding.
        pattern: the regular expression that splits text into pieces.
        special_tokens: control tokens and their ranks; in counted text they are ordinary text.
        ranks_sha256: SHA-256 of the official `.tiktoken` file, in hex.
    """

    __slots__ = ("name", "pattern", "ranks_sha256", "special_tokens")

    def __init__(
        self, name: str, *, pattern: str, special_tokens: dict[str, int], ranks_sha256: str
    ) -> None:
        self.name = name
        self.pattern = pattern
        self.special_tokens = special_tokens
        self.ranks_sha256 = ranks_sha256


ENCODINGS = {
    specification.name: specification
    for specification in (
        EncodingSpecification(
            "o200k_base",
            pattern="|".join(
                (
                    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTION}",
                    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTION}",
                    r"\p{N}{1,3}",
                    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                    r"\s*[\r\n]+",
                    r"\s+(?!\S)",
                    r"\s+",
                )
            ),
            special_tokens={"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
            ranks_sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        ),
        EncodingSpecification(
            "cl100k_base",
            pattern="|".join(
                (
                    r"'(?i:[sdmt]|ll|ve|re)",
                    r"[^\r\n\p{L}\p{N}]?+\p{L}++",
                    r"\p{N}{1,3}+",
                    r" ?[^\s\p{L}\p{N}]++[\r\n]*+",
                    r"\s++$",
                    r"\s*[\r\n]",
                    r"\s+(?!\S)",
                    r"\s",
                )
            ),
            special_tokens={
                "<|endoftext|>": 100257,
                "<|fim_prefix|>": 100258,
                "<|fim_middle|>": 100259,
                "<|fim_suffix|>": 100260,
                "<|endofprompt|>": 100276,
            },
            ranks_sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        ),
    )
}


def data_name(encoding: str) -> str:
    """Return the name of an encoding's data file, relative to this package."""
    return f"data/{encoding}.zst"


def load_tokens(encoding: str) -> list[bytes]:
    """Return the tokens of a shipped encoding in rank order.

    Raises:
        StorageError: the data file cannot be read.
        FormatError: the data file is damaged.
    """
    import pkgutil  # costs 10 ms, and only the first count needs it

    try:
        data = pkgutil.get_data(__package__, data_name(encoding))
    except OSError as error:
        raise errors.StorageError(
            f"cannot read the ranks of {encoding}", path=error.filename
        ) from error
    if data is None:
        raise errors.StorageError(
            f"the ranks of {encoding} are not installed", path=data_name(encoding)
        )
    return unpack_tokens(data)


def unpack_tokens(data: bytes) -> list[bytes]:
    """Return the tokens in the content of a data file.

    Raises:
        FormatError: it is damaged.
    """
    import msgpack

    zstd = load_zstd()
    try:
        tokens: list[bytes] = msgpack.unpackb(zstd.decompress(data), max_array_len=MAXIMUM_TOKENS)
    except (zstd.ZstdError, ValueError) as error:
        raise errors.FormatError(f"token ranks are damaged: {error}") from error
    return tokens


def load_zstd() -> ModuleType:
    """Return the module that compresses: Python's own, or its backport."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


class Tokenizer(Protocol):
    """Counts tokens of text.

    Attributes:
        encoding: the name of the encoding, which can be part of a file name.
        exact: whether a model with that encoding counts the same.
    """

    @property
    def encoding(self) -> str: ...

    @property
    def exact(self) -> bool: ...

    def count(self, text: str) -> int:
        """Return the number of tokens of the text."""


class TiktokenTokenizer:
    """Counts with tiktoken and the ranks that Trace ships, which are loaded on first use."""

    exact = True

    def __init__(self, encoding: str) -> None:
        """Create a tokenizer for an encoding of `ENCODINGS`."""
        self.encoding = encoding
        self._encode: Callable[[str], list[int]] | None = None
        self._lock = allocate_lock()

    def __repr__(self) -> str:
        return f"TiktokenTokenizer({self.encoding!r})"

    def count(self, text: str) -> int:
        """Return the number of tokens; control tokens such as `<|endoftext|>` count as text.

        It equals tiktoken's own count. Only where tiktoken fails (more than about a million consecutive white space
        characters), the run is counted in slices, with an error of a few tokens.

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
        """Return the UTF-8 bytes / 3.6, rounded up."""
        return estimate_from_bytes(len(text.encode("utf-8", "surrogatepass")))


class CallableTokenizer:
    """A caller's own counting function.

    Attributes:
        cached: whether its counts are kept for other processes, which know the function by its name alone.
    """

    exact = False

    def __init__(self, name: str, function: Callable[[str], int], *, cached: bool = True) -> None:
        """Wrap a function that returns the number of tokens of a text.

        Args:
            name: the name for cached counts: lower-case letters, digits, `.`, `_`, `-`, at most 64. Use another name
                if the function changes.
            function: must accept any text, including lone surrogates.
            cached: whether the name identifies the function, so that its counts may be kept.

        Raises:
            InvalidInputError: the name is not valid, or that of a built-in encoding.
        """
        import re

        if not re.fullmatch(_NAME, name) or name in ENCODINGS or name == HEURISTIC_ENCODING:
            raise errors.InvalidInputError(f"not a tokenizer name: {name[:80]!r}", name=name)
        self.encoding = name
        self.cached = cached
        self._function = function

    def __repr__(self) -> str:
        return f"CallableTokenizer({self.encoding!r})"

    def count(self, text: str) -> int:
        """Return the result of the function.

        Raises:
            InvalidInputError: it is not a non-negative integer.
        """
        count = self._function(text)
        if type(count) is not int or count < 0:
            raise errors.InvalidInputError(
                f"the tokenizer {self.encoding} returned {count!r}, not a number of tokens"
            )
        return count


def as_tokenizer(
    tokenizer: Tokenizer | Callable[[str], int] | None,
) -> Tokenizer | None:
    """Return a tokenizer; None stays None.

    A plain function is named `custom`. Its counts are not kept, since two functions may have that name.

    Raises:
        InvalidInputError: the value is neither.
    """
    if tokenizer is None or _is_tokenizer(tokenizer):
        return tokenizer
    if callable(tokenizer):
        return CallableTokenizer("custom", tokenizer, cached=False)
    raise errors.InvalidInputError(f"not a tokenizer: {type(tokenizer).__name__}")


def _is_tokenizer(given: Any) -> TypeGuard[Tokenizer]:
    return all(hasattr(given, name) for name in ("count", "encoding", "exact"))


def is_cached(tokenizer: Tokenizer) -> bool:
    """Return True if the counts of a tokenizer may be kept for other processes, under its name."""
    return getattr(tokenizer, "cached", True)


def get_tokenizer(name: str = DEFAULT_ENCODING) -> Tokenizer:
    """Return the tokenizer of an encoding, one instance per process.

    Without tiktoken it estimates, which its `encoding` and all token sources show.

    Raises:
        InvalidInputError: unknown encoding.
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
            f"unknown encoding {name[:80]!r}; expected one of {', '.join((*ENCODINGS, HEURISTIC_ENCODING))}",
            name=name,
        )
    return TiktokenTokenizer(name) if _is_installed("tiktoken") else HeuristicTokenizer()


def _is_installed(package: str) -> bool:
    """Return True if a package can be imported, without `importlib.util`, which takes 3 ms to load."""
    if package in sys.modules:
        return sys.modules[package] is not None
    return any(finder.find_spec(package, None) is not None for finder in sys.meta_path)


def estimate_from_bytes(size_bytes: int) -> int:
    """Return the estimated tokens of that many bytes of UTF-8, rounded up."""
    return (size_bytes * 10 + 35) // 36


def exact_parts(text: str, size: int = PART_CHARACTERS) -> Iterator[str]:
    """Yield the text in parts of at least `size` characters whose counts add up to its own.

    A text that cannot be split is yielded whole.
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
        # ValueError since tiktoken 0.13; before, a Rust panic, which is not an Exception.
        panic = type(error).__name__ == "PanicException"
        if not (panic or isinstance(error, ValueError)) or len(text) < 2 * _ALIGNMENT:
            raise
    # The longest tokens repeat one character a power of two times, so an aligned cut costs the least.
    middle = len(text) // 2 // _ALIGNMENT * _ALIGNMENT
    return _count(encode, text[:middle]) + _count(encode, text[middle:])


def _tiktoken_encode(name: str) -> Callable[[str], list[int]]:
    try:
        # Takes 20 ms, and a warm compile counts nothing.
        import tiktoken
    except ImportError as error:
        raise errors.StateError(f"tiktoken is installed but cannot be imported: {error}") from error
    specification = ENCODINGS[name]
    tokens = load_tokens(name)
    # Built directly: tiktoken.get_encoding would download, and a plug-in that registers a name twice would break
    # every encoding of the process.
    encoding = tiktoken.Encoding(
        name,
        pat_str=specification.pattern,
        mergeable_ranks=dict(zip(tokens, range(len(tokens)), strict=True)),
        special_tokens=specification.special_tokens,
    )

    def encode(text: str) -> list[int]:
        # Not encode_ordinary, which panics where this one raises.
        return encoding.encode(text, disallowed_special=())

    return encode
