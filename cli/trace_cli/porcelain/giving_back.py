"""`trace export --native`: the files that sessions were imported from, byte for byte."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from trace_cli.failures import usage_error
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import write_record
from trace_cli.render.tables import counted, size
from trace_cli.runtime import Invocation
from trace_store.errors import (
    AlreadyExistsError,
    CorruptObjectError,
    ObjectNotFoundError,
    RevisionNotFoundError,
    TraceError,
)
from trace_store.exporters import Exported
from trace_store.exporters.native import KeptFile, find_file, kept_files, native_file
from trace_store.exporters.registry import writer_names
from trace_store.exporters.saving import save_file
from trace_store.exporters.session import find_branch, session_name
from trace_store.files import Disk
from trace_store.oid import Digester
from trace_store.secrets.placeholders import PlaceholderCount
from trace_store.store import Store
from trace_store.values import replace


def give_back_all(
    invocation: Invocation, store: Store, output: str | None, *, force: bool, as_json: bool
) -> None:
    """Write every kept file into a folder, under its own name. One that is damaged does not stop the others.

    Raises:
        AlreadyExistsError: one is there already; those before it are written.
        InvalidInputError: it is not told where to.
        ObjectNotFoundError, CorruptObjectError: some did not come back; all others are written.
    """
    if output in (None, "-"):
        raise usage_error("--all needs a folder to write to", "-o FOLDER")
    assert output is not None
    errors: list[TraceError] = []

    def lost(ref: str, error: TraceError) -> None:
        errors.append(error)
        invocation.note(f"note: {safe(ref)} does not come back: {one_line(error.message, 120)}")

    disk = Disk()
    taken: set[str] = set()
    placeholders = PlaceholderCount()
    whole = count = 0
    for kept in kept_files(store, lost=lost):
        try:
            exported = _counted(native_file(store, kept), placeholders)
        except (ObjectNotFoundError, CorruptObjectError) as error:
            lost(kept.ref, error)
            continue
        name = _free_name(kept, exported.file_name, taken)
        path = os.path.abspath(os.path.join(invocation.folder, output, name))
        disk.make_directory(os.path.dirname(path))
        whole += _save(disk, path, exported, force=force)
        count += 1
        if as_json:
            write_record(invocation, _record(store, kept, path))
    if not as_json:
        invocation.line(f"{counted(count, 'file')}: {size(whole)}")
    _tell_placeholders(invocation, placeholders)
    if errors:
        raise errors[0]


def give_back(
    invocation: Invocation,
    store: Store,
    text: str,
    output: str | None,
    *,
    file: str,
    force: bool,
    as_json: bool,
) -> None:
    """Write the file of a session, to a path or to standard output.

    Raises:
        RevisionNotFoundError: no file of it is kept.
        AmbiguousRevisionError: several are.
        AlreadyExistsError: the path is taken.
    """
    kept = find_file(store, text, file=file)
    placeholders = PlaceholderCount()
    exported = _counted(native_file(store, kept), placeholders)
    path = None
    if output not in (None, "-"):
        path = os.path.abspath(os.path.join(invocation.folder, output or ""))
        if os.path.isdir(path):
            path = os.path.join(path, exported.file_name)
        _save(Disk(), path, exported, force=force)
    elif not as_json:
        for chunk in exported.chunks():
            invocation.write(chunk)
    if as_json:
        write_record(invocation, _record(store, kept, path))
    elif path is not None:
        shown = path if os.path.isabs(output or "") else os.path.relpath(path)
        invocation.line(f"{safe(shown)}: {size(kept.size)}, as it was imported")
    _tell_placeholders(invocation, placeholders)


def kept_otherwise(store: Store, text: str, *, file: str) -> str:
    """Return the form in which a session can be written whose file is not kept; "" when the file is kept.

    Raises:
        RevisionNotFoundError: there is no such session, or nothing writes its format.
        AmbiguousRevisionError: several sessions, or files of it, are called so.
    """
    try:
        find_file(store, text, file=file)
    except RevisionNotFoundError as error:
        named = session_name(find_branch(store, text))
        if file or named is None or named[0] not in writer_names():
            hint = "--format writes any session; `trace import` keeps files from now on"
            raise RevisionNotFoundError(error.message, revision=text, hint=hint) from error
        return named[0]
    return ""


def _counted(exported: Exported, placeholders: PlaceholderCount) -> Exported:
    """Return a file whose placeholders are counted while it is written."""

    def chunks() -> Iterator[bytes]:
        for chunk in exported.chunks():
            placeholders.add(chunk)
            yield chunk

    return replace(exported, data=chunks())


def _tell_placeholders(invocation: Invocation, placeholders: PlaceholderCount) -> None:
    """Say that what was given back is not what the program had written, where secrets were taken out of it."""
    if placeholders.found:
        what = counted(placeholders.found, "placeholder")
        verb = "stands" if placeholders.found == 1 else "stand"
        invocation.note(f"note: {what} {verb} where secrets were; their values are stored nowhere")


def _free_name(kept: KeptFile, name: str, taken: set[str]) -> str:
    """Return a name below the folder that no other file of this run has."""
    stem, ending = os.path.splitext(name)
    candidates = [
        os.path.join(kept.format, name),
        os.path.join(kept.format, f"{stem}-{kept.id}{ending}"),
        os.path.join(kept.format, f"{kept.session}-{stem}-{kept.id}{ending}"),
    ]
    free = next(each for each in candidates if each.casefold() not in taken)
    taken.add(free.casefold())
    return free


def _save(disk: Disk, path: str, exported: Exported, *, force: bool) -> int:
    try:
        return save_file(disk, path, exported, overwrite=force)
    except AlreadyExistsError as error:
        raise AlreadyExistsError(error.message, path=path, hint="--force overwrites it") from error


def _record(store: Store, kept: KeptFile, path: str | None) -> dict[str, Any]:
    hasher = Digester()
    placeholders = PlaceholderCount()
    for chunk in native_file(store, kept).chunks():
        hasher.update(chunk)
        placeholders.add(chunk)
    return {
        "session": kept.session,
        "format": kept.format,
        "agent": kept.agent or None,
        "ref": kept.ref,
        "file": path,
        "size": kept.size,
        "blake3": hasher.digest().hex(),
        "placeholders": placeholders.found,
    }
