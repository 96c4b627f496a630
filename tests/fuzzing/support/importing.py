"""Transcripts of every format, whatever they hold."""

from __future__ import annotations

import codecs
import io
import json
import os
import tempfile

from tests.fuzzing.support.texts import fast_folder
from trace_store import errors
from trace_store.context.compiler import ContextCompiler
from trace_store.contracts.ref_names import FILES
from trace_store.importers.import_paths import import_paths
from trace_store.importers.registry import format_of
from trace_store.importers.sniff import HEAD_BYTES
from trace_store.maintenance.fsck import fsck
from trace_store.store.store import Store
from trace_store.transcripts.segments import restore
from trace_store.writer import Writer

HEADS = "refs/heads/sessions/"
CHATS, OPENAI = "chats", "openai"


_WIDE = (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF32_BE)
"""Byte order marks of UTF-16 and UTF-32; the one of little-endian UTF-32 begins like that of UTF-16."""


def transcript(name: str, data: bytes) -> None:
    """What is taken for a transcript of a format comes back to the byte, and taken again it adds nothing."""
    store = Store.memory()
    found = format_of(data[:HEAD_BYTES])
    if name == CHATS:
        name = OPENAI if found is None else found.NAME
    try:
        report, *_ = import_paths(Writer(store), ["-"], format=name, stdin=io.BytesIO(data)).files
    except errors.UnreadableInputError:
        assert not list(store.refs.iterate())
        return
    json.dumps([skip.detail for skip in report.skips])
    # A file in UTF-16 or UTF-32 is read, and comes back, as its UTF-8 content.
    _sound(store, None if data.startswith(_WIDE) else [data])
    before = dict(store.refs.iterate())
    again = import_paths(Writer(store), ["-"], format=name, stdin=io.BytesIO(data))
    assert not again.commits
    assert dict(store.refs.iterate()) == before


def opencode_database(data: bytes) -> None:
    """Bytes that are said to be the database of opencode."""
    fd, path = tempfile.mkstemp(suffix=".db", dir=fast_folder())
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        store = Store.memory()
        try:
            import_paths(Writer(store), [path])
        except errors.UnreadableInputError:
            return
        _sound(store, None)
    finally:
        os.unlink(path)


def _sound(store: Store, data: list[bytes] | None) -> None:
    assert not [finding for finding in fsck(store) if finding.severity == "error"]
    kept = [b"".join(restore(tip, store.objects.read)) for _, tip in store.refs.iterate(FILES)]
    assert data is None or kept in ([], data)
    contexts = ContextCompiler(store)
    for name, _ in store.refs.iterate(HEADS):
        contexts.compile(name)
