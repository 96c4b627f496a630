"""Names that would become paths, options or other names: refused wherever a name comes in, and nothing has changed."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.bundles.test_hostile_bundles import made
from tests.cli.test_bad_input import refused, state
from tests.support.command_line import Trace
from tests.support.subjects import bundles
from trace_store.base.environment import Environment
from trace_store.base.oid import ObjectId, digest, hash_object
from trace_store.contracts.ref_names import is_ref_name
from trace_store.disk.files import Disk
from trace_store.disk.layout import Layout
from trace_store.errors import CorruptBundleError, FormatError, InvalidInputError
from trace_store.exporters.contract import ExportSession, file_name
from trace_store.importers.convert import ref_component
from trace_store.journal.frames import HEADER_BYTES, Frame, Move, encode_transaction, scan
from trace_store.objects.codec import encode_blob
from trace_store.refs.head import decode_head
from trace_store.store.store import Store

OID = ObjectId(digest(b"x"))
NAMES = {
    "up": "..",
    "up and on": "../../../etc/passwd",
    "up in between": "a/../../x",
    "here": ".",
    "hidden": ".git",
    "absolute": "/etc/passwd",
    "of a drive": "C:x",
    "a stream": "x::$INDEX_ALLOCATION",
    "a stream of a folder": "x:$DATA",
    "a backslash": "a\\b",
    "up with backslashes": "..\\..\\x",
    "a short name": "TRACE~1",
    "git's short name": "GIT~1",
    "a dot behind": "x.",
    "a space behind": "x ",
    "a space before": " x",
    "a device": "con",
    "a device with an ending": "NUL.txt",
    "a port": "com1",
    "an option": "-x",
    "an option deeper": "a/--upload-pack=x",
    "a line end": "a\nb",
    "a carriage return": "a\r",
    "a zero byte": "a\x00b",
    "an escape": "a\x1b[2J",
    "a delete": "a\x7f",
    "one byte control": "a\x9b",
    "composed": "\u00e9",
    "decomposed": "e\u0301",
    "ignored by HFS+": "a\u200cb",
    "of full width": "\uff0e\uff0e/x",
    "a slash like another": "a\u2215b",
    "right to left": "a\u202eb",
    "a surrogate": "a\ud800",
    "an id": "a" * 64,
    "an id in capitals": "A" * 64,
    "a lock": "x.lock",
    "a reflog": "x.log",
    "a moment": "x@{1}",
    "at": "@",
    "a star": "x*",
    "a question": "x?",
    "a bracket": "<x>",
    "a bar": "a|b",
    "a quote": 'a"b',
    "nothing": "",
    "nothing between": "a//b",
    "too long a part": "x" * 101,
    "too long": "x/" * 300 + "x",
}
each_name = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)


@pytest.fixture
def filled(repository: Trace, tmp_path: Path) -> Trace:
    assert repository("commit", "--user", "before").code == 0
    return repository


@each_name
def test_as_a_ref(filled: Trace, tmp_path: Path, name: str) -> None:
    ref = f"refs/heads/{name}"
    assert not is_ref_name(ref)
    before = state(tmp_path)
    for words in (
        ("update-ref", ref, "HEAD"),
        ("update-ref", "-d", ref),
        ("symbolic-ref", "HEAD", ref),
        ("commit", "--user", "x", "--branch", name),
        ("bundle", "import", "--prefix", name, "none.bundle"),
    ):
        if "\x00" in name or (words[0] == "bundle" and not name):
            continue
        outcome = filled(*words)
        assert outcome.code in (2, 4, 14), (words, outcome)
        assert outcome.err.startswith("trace: error: ")
        assert state(tmp_path) == before, words


@each_name
def test_in_a_file_that_names_one(tmp_path: Path, name: str) -> None:
    """HEAD, and a frame of a journal, which no Trace need have written."""
    with contextlib.suppress(FormatError):
        head = decode_head(f"ref: refs/heads/{name}\n".encode("utf-8", "surrogatepass"), "HEAD")
        # Trailing white space is ignored: git may have changed the line ending.
        assert head == f"refs/heads/{name.rstrip()}"
        assert name != name.rstrip()
    try:
        frame = Frame.of_transaction([Move(f"refs/heads/{name}", None, OID)], "x", 1, "", "")
        data = encode_transaction(frame, {})
    except InvalidInputError:
        return
    assert len(data) > HEADER_BYTES
    assert list(scan(lambda at, size: data[at : at + size], 0, len(data))) == []


@each_name
def test_in_a_bundle(tmp_path: Path, name: str) -> None:
    with Store.init(str(tmp_path)) as store:
        before = state(tmp_path)
        blob = encode_blob(b"said")
        with contextlib.suppress(InvalidInputError):  # not possible in a header
            data = made({f"refs/heads/{name}": [hash_object(blob)]}, [blob])
            with pytest.raises(CorruptBundleError):
                bundles(store).import_(io.BytesIO(data).read)
        assert state(tmp_path) == before
        assert list(store.refs.iterate()) == []


@each_name
def test_as_the_id_of_a_session(filled: Trace, tmp_path: Path, name: str) -> None:
    """It becomes another name, which is fit, and no file is written for it outside of the repository."""
    assert is_ref_name(f"refs/heads/sessions/x/{ref_component(name)}")
    written = file_name(cast(ExportSession, SimpleNamespace(id=name, thread=name)), ".json")
    assert os.path.basename(written) == written
    assert written.isascii()
    assert written[0] not in ".-"
    session = {"type": "session_start", "id": name, "sessionTitle": name}
    said = {"type": "message", "id": name, "message": {"role": "user", "content": "Look."}}
    (tmp_path / "s.jsonl").write_text(json.dumps(session) + "\n" + json.dumps(said) + "\n")
    outside = set(tmp_path.iterdir())
    assert filled("import", "s.jsonl", "-q").code == 0
    assert set(tmp_path.iterdir()) == outside
    assert filled("fsck").code == 0


@each_name
def test_as_the_id_of_a_repository(tmp_path: Path, name: str) -> None:
    """It becomes a folder among the user's own files."""
    me = Environment(data_dir=str(tmp_path))
    if name == "a" * 64:
        return
    with pytest.raises(FormatError):
        me.store_file(name, "key")


def test_names_that_differ_by_case_alone(filled: Trace, tmp_path: Path) -> None:
    """A second ref that would be the same file where case does not count is refused."""
    assert filled("update-ref", "refs/heads/Topic", "HEAD").code == 0
    assert filled("commit", "--user", "on", "--branch", "topic").code == 2
    assert filled("seal").code == 0
    assert filled("fsck").code == 0


FOREIGN = ("..x", "a\nb", "\x1b[2J", "TRACE~1", "con", "-x", "x.lock", "é", "a:b", "x ", "a\\b")


@pytest.mark.parametrize("name", FOREIGN, ids=ascii)
@pytest.mark.skipif(os.name == "nt", reason="such names cannot be made there")
def test_brought_by_git(filled: Trace, tmp_path: Path, name: str) -> None:
    """A folder with an invalid ref name, and its file: skipped, reported, unchanged."""
    assert filled("seal").code == 0
    folder = tmp_path / ".trace" / "refs" / "heads" / name
    folder.mkdir()
    (folder / ("ab" * 32)).write_bytes(b"")
    for words in (("status",), ("log",), ("for-each-ref",), ("commit", "--user", "x"), ("seal",)):
        outcome = filled(*words)
        assert outcome.code == 0, (words, outcome)
        assert "\x1b" not in outcome.text + outcome.err
        assert name.encode() not in outcome.out or name in ("con", "-x")
    assert (folder / ("ab" * 32)).exists()
    assert filled("fsck").text


LAYOUT = Layout("/r/.trace")
PATHS: dict[str, Callable[[str], str]] = {
    "an index": lambda ref: LAYOUT.index_file(ref, "messages"),
    "a ref": LAYOUT.ref_dir,
    "a reflog": LAYOUT.log_file,
}


@pytest.mark.parametrize("path_of", PATHS.values(), ids=PATHS)
def test_what_is_allowed_stays_below(path_of: Callable[[str], str]) -> None:
    for name in ("main", "a/b", "x" * 100, "a-b.c", "%2F", "%", "a%2Fb"):
        ref = f"refs/heads/{name}"
        if is_ref_name(ref):
            path = path_of(ref)
            assert os.path.normpath(path) == path
            assert path.startswith("/r/.trace/")


def test_a_file_to_import_is_named_by_its_owner(filled: Trace, tmp_path: Path) -> None:
    for name in ("../../etc/passwd", "-", "no\nsuch", "x\x1b[2J.jsonl"):
        outcome = filled("import", "--", name)
        refused(outcome, 2)
        assert "\x1b" not in outcome.err
    assert Disk().names(str(tmp_path / ".trace" / "refs")) is not None
