"""Byte-pair ranks of OpenAI's encodings, shipped with Trace so that counting needs no network.

A data file is a zstd frame with a checksum. It contains a msgpack array of the tokens' bytes in rank order.
`tools/build_token_data.py` writes it from the official `.tiktoken` file, whose SHA-256 is kept here;
docs/design/003-token-data.md explains the format.
"""

from __future__ import annotations

import sys

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

MAXIMUM_TOKENS = 1 << 20


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


_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"

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
