"""Packs from outside the repository: given by path or on standard input."""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.base.oid import HEX_CHARACTERS, is_full_id
from trace_store.disk.layout import INDEX_SUFFIX, PACK_SUFFIX
from trace_store.odb.ingest import pack_of, read_packs
from trace_store.odb.pack import Pack
from trace_store.odb.verify import PackVerifier

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_cli.runtime import Invocation
    from trace_store.disk.files import Disk

STANDARD_INPUT = "standard input"
ADVICE = "copy or send the file again"
"""The hint for a corrupt pack that is not part of the repository."""


def packs_on_stdin(invocation: Invocation) -> Iterator[bytes]:
    """Yield the bytes of each pack on standard input.

    Raises:
        CorruptPackError: the input is not a sequence of complete packs.
    """
    try:
        yield from read_packs(invocation.stdin.read, STANDARD_INPUT)
    except errors.CorruptPackError as error:
        error.data.setdefault("hint", ADVICE)
        raise


def examined(pack: Pack | bytes) -> PackVerifier:
    """Verify a whole pack, or the bytes of one, and return its verifier.

    Raises:
        CorruptPackError: the pack is corrupt.
    """
    try:
        look = PackVerifier(pack if isinstance(pack, Pack) else pack_of(pack, STANDARD_INPUT))
        for _ in look.objects():
            pass
    except errors.CorruptPackError as error:
        error.data.setdefault("hint", ADVICE)
        raise
    return look


def open_pack(disk: Disk, path: str) -> Pack:
    """Open the pack in a file; the caller closes it. Symbolic links are followed.

    Raises:
        UnreadableInputError: the file does not exist, is not a file, or cannot be read.
        CorruptPackError: it does not begin and end like a pack.
    """
    return Pack(disk, path, name_in(path), open_file(disk, path))


def open_file(disk: Disk, path: str) -> int:
    """Open a file given by path and return its descriptor.

    Raises:
        UnreadableInputError: the path does not exist, is not a file, or cannot be read.
    """
    try:
        fd = disk.open(os.path.realpath(path))
    except (errors.StorageError, ValueError) as error:
        raise errors.UnreadableInputError(f"cannot read {path!r}: {error}", path=path) from error
    if fd is None:
        raise errors.UnreadableInputError(f"there is no file {path!r}", path=path)
    return fd


def name_in(path: str) -> str:
    """Return the pack name at the end of a file name; else the file name."""
    stem = os.path.basename(path).removesuffix(PACK_SUFFIX).removesuffix(INDEX_SUFFIX)
    last = stem[-HEX_CHARACTERS:]
    return last if is_full_id(last) else stem
