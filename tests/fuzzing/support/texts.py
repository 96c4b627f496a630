"""What people and strangers write: revisions, settings, documents, names, and the files of a repository."""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import os
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from trace_store import Repo, errors
from trace_store.base.environment import Environment
from trace_store.base.ident import format_time
from trace_store.contracts.ref_names import MAXIMUM_COMPONENT_BYTES, is_ref_name, problem_of
from trace_store.history.status import status
from trace_store.importers.convert import ref_component
from trace_store.maintenance.fsck import fsck
from trace_store.objects.content import ObjectCollector
from trace_store.objects.message import load_message, store_message
from trace_store.providers.documents import parse_messages
from trace_store.providers.wire import parse_json
from trace_store.store.config import Config, parse
from trace_store.store.memory_disk import MemoryDisk
from trace_store.store.revision import (
    parse_moment,
    resolve,
    resolve_address,
    resolve_commit,
    resolve_range,
)
from trace_store.store.store import Store

NOWHERE = Environment(author="fuzz")


@functools.cache
def _history() -> Repo:
    repo = Repo(Store.memory(), author="fuzz")
    for text in ("one", "two", "three"):
        repo.append("user", text)
    return repo


def revision(data: bytes) -> None:
    """Text that is said to name a commit, a range, a message or a time."""
    text = data.decode("utf-8", "surrogateescape")
    store = _history().store
    for read in (resolve, resolve_commit, resolve_range, resolve_address):
        with contextlib.suppress(errors.InvalidInputError, errors.NotFoundError):
            read(store, text)
    moment = parse_moment(text, store)
    if moment is not None and 0 <= moment < 1 << 47:
        format_time(moment)
    if is_ref_name(text):
        assert not problem_of(text)
        assert os.path.normpath(f"/x/{text}") == f"/x/{text}"
        assert text.isascii()
        assert text.isprintable()
    component = ref_component(text)
    assert is_ref_name(f"refs/heads/{component}")
    assert len(component) <= MAXIMUM_COMPONENT_BYTES


def config(data: bytes) -> None:
    """Bytes that are said to be a repository's configuration."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    try:
        values = parse(text, "config")
    except errors.FormatError:
        with pytest.raises(errors.FormatError):
            Config(MemoryDisk(), "/config", text)
        return
    table = tomllib.loads(text)
    for key, value in values.items():
        if "." not in key and isinstance(table.get(key), str | int | bool):
            assert repr(table[key]) == repr(value)
    try:
        settings = Config(MemoryDisk(), "/config", text)
    except (errors.FormatError, errors.UnsupportedFormatError):
        return
    assert isinstance(settings.default_branch, str)
    assert settings.budget is None or isinstance(settings.budget, int)
    before = dict(settings.items())
    try:
        settings.set("budget", "12k")
    except errors.FormatError:
        return
    assert {**before, "budget": 12_000} == dict(settings.items())


def documents(data: bytes) -> None:
    """JSON of messages, in the form of any provider."""
    text = data.decode("utf-8", "replace")
    try:
        messages = parse_messages(text)
    except (errors.UnreadableInputError, errors.InvalidMessageError):
        return
    for message in messages:
        gathering = ObjectCollector()
        try:
            stored = store_message(message, gathering.put)
        except errors.InvalidMessageError:
            continue
        held: dict[bytes, bytes] = {**dict(gathering.objects)}
        loaded = load_message(stored, held.__getitem__)
        assert loaded.parts == message.parts
    with contextlib.suppress(ValueError):
        parse_json(text)


_FILES = (
    *("HEAD", "config", "local/published", "cache/refs", "index/commits.table"),
    *("index/commits.lines", "index/commits.text", "index/refs%2Fheads%2Fmain.messages"),
    *(
        "index/refs%2Fheads%2Fmain.o200k_base.tokens",
        "logs/HEAD.log",
        "logs/refs/heads/main.log",
        "journal/3",
    ),
)


def local_files() -> tuple[str, ...]:
    """Return the files of a repository; the first byte of an input selects one."""
    return _FILES


@functools.cache
def local_template() -> Path:
    """Return the folder of the repository with these files; an input changes a copy."""
    folder = Path(tempfile.mkdtemp(prefix="trace-fuzz-", dir=fast_folder()))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    repo = Repo.init(str(folder), environment=NOWHERE)
    for number in range(4):
        repo.append("user", f"said {number}")
    repo.compile()
    status(repo.contexts)
    repo.seal()
    repo.append("user", "in the journal")
    repo.compile()
    list(repo.log())
    repo.close()
    return folder


def fast_folder() -> str | None:
    """Return a folder in memory, where there is one."""
    return "/dev/shm" if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK) else None


_numbers = itertools.count()


@contextlib.contextmanager
def _copy(template: Path) -> Iterator[Path]:
    folder = template.with_name(f"{template.name}-{next(_numbers)}")
    shutil.copytree(template, folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def local_file(data: bytes) -> None:
    """A repository in which the file selected by the first byte has other content."""
    if not data:
        return
    with _copy(local_template()) as folder:
        path = folder / ".trace" / _FILES[data[0] % len(_FILES)]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data[1:])
        refused = (
            errors.FormatError,
            errors.NotFoundError,
            errors.StateError,
            errors.StorageError,
            errors.UnsupportedFormatError,
        )
        try:
            repo = Repo.open(str(folder), environment=NOWHERE)
        except refused:
            return
        with repo:
            for use in (_compile, _look, _append, _fsck):
                with contextlib.suppress(*refused, errors.InvalidInputError, errors.ConflictError):
                    use(repo)


def _compile(repo: Repo) -> None:
    said = [part for message in repo.compile().messages for part in message.parts]
    assert len(said) <= 6


def _look(repo: Repo) -> None:
    status(repo.contexts)
    list(repo.log())


def _append(repo: Repo) -> None:
    repo.append("user", "more")
    repo.seal()


def _fsck(repo: Repo) -> None:
    fsck(repo.store)
