"""`trace export`: a session as a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, is_revision, opened_store
from trace_cli.porcelain.progress import Progress
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import write_data, write_record
from trace_cli.render.tables import counted, size
from trace_cli.runtime import Invocation
from trace_store.errors import (
    AlreadyExistsError,
    CorruptObjectError,
    ObjectNotFoundError,
    RenderError,
    RevisionNotFoundError,
    TraceError,
)
from trace_store.exporters.contract import Exported, Loss
from trace_store.exporters.files import save_file
from trace_store.exporters.html.index import IndexEntry, index_page
from trace_store.exporters.html.page import MADE_BY
from trace_store.exporters.registry import FORMS, writer_named, writer_names
from trace_store.exporters.session import find_branch, read_session, session_name
from trace_store.exporters.source_files import SourceFile, find_file, restore_file, source_files
from trace_store.files import Disk, read_file
from trace_store.frozen import replace
from trace_store.oid import Digester
from trace_store.refs.names import BRANCHES
from trace_store.secrets.placeholders import PlaceholderCount
from trace_store.sessions.listing import revision_of
from trace_store.store.handle import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.exporters.contract import ExportSession, Writer


def forms(incomplete: str) -> list[str]:
    """Complete the name of a format."""
    return [name for name in writer_names() if name.startswith(incomplete)]


@takes(
    Argument(
        "SESSION",
        "revision",
        "A session id (prefix), a branch, or any revision",
        OPTIONAL,
        default="HEAD",
        completes="COMMIT",
    ),
    Option(
        "-f --format",
        "form",
        f"One of {', '.join(sorted(FORMS))} (default: by the extension of FILE)",
        "FORMAT",
        completes="EXPORTED",
    ),
    Option("--native", "native", "Write the imported source file, byte for byte"),
    Option("--all", "everything", "With --native: all files, to the folder of -o"),
    Option("--file", "file", "With --native: select one of several files", "ID", default=""),
    Option("-o --output", "output", "Write to FILE, or to a generated name in a folder", "FILE"),
    Option(
        "--html",
        "html_folder",
        "Write a page for each session and an index to a folder",
        "DIR",
    ),
    Option("--at", "at", "Export the session as of a time or revision", "WHEN", default=""),
    Option(
        "--hidden",
        "hidden",
        "Include messages hidden from the model",
    ),
    Option("--strict", "strict", "Fail if the format loses content"),
    Option("--force", "force", "Overwrite FILE"),
    JSON,
)
def export(
    invocation: Invocation,
    *,
    revision: str,
    form: str | None,
    native: bool,
    everything: bool,
    file: str,
    output: str | None,
    html_folder: str | None,
    at: str,
    hidden: bool,
    strict: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write a session to a file.

    By default this is the compiled context of the session, or of any revision. Content that the format cannot hold is
    listed on standard error; with --strict nothing is written then, and the exit code is 7.

    --native writes the source file that the session was imported from, byte for byte and verified by hash, without
    later commits. Standard error says how many placeholders it has in place of secrets. If the source was not kept, the
    session is written in the same format instead.

    Without -o, the file goes to standard output. With --json, a report is printed instead, and without -o nothing else
    is written. Packages can add formats with entry points of the group `trace_store.exporters`.

    --html writes a page for SESSION, or for every session, and an `index.html` that searches titles and prompts.
    Existing pages by Trace are replaced.

        trace export -o session.html
        trace export --html sessions
        trace export 062a8bdd --format markdown | less
        trace export --native 062a8bdd > session.jsonl
    """
    if html_folder is not None:
        if native or everything or file or form or at or output or strict:
            raise usage_error(
                "--html can be combined with SESSION, --hidden, --force and --json only"
            )
        _write_pages(invocation, revision, html_folder, hidden=hidden, force=force, as_json=as_json)
        return
    to_file = output not in (None, "-")
    if as_json and output == "-":
        raise usage_error("the report and the session cannot both be written to standard output")
    if force and not to_file:
        raise usage_error("--force requires -o FILE")
    losses_before: tuple[Loss, ...] = ()
    if native or everything or file:
        if not native or form or at or hidden:
            raise usage_error(
                "--native excludes --format, --at and --hidden; --all and --file require --native"
            )
        with opened_store(invocation) as store:
            if everything:
                give_back_all(invocation, store, output, force=force, as_json=as_json)
                return
            form = kept_otherwise(store, revision, file=file)
            if not form:
                give_back(
                    invocation, store, revision, output, file=file, force=force, as_json=as_json
                )
                return
        losses_before = (Loss("original-bytes", 1),)
    name = form or _form_of(output)
    writer = writer_named(name)
    if hidden and not getattr(writer, "SHOWS_HIDDEN", False):
        raise usage_error(f"{name} cannot hold messages hidden from the model")
    with opened_store(invocation) as store:
        session = _session(store, revision, at, hidden=hidden)
        if not session.turns and not getattr(writer, "SHOWS_HIDDEN", False):
            raise RenderError(
                f"{one_line(session.id)} has no messages that {name} could hold",
                hint="`trace log` lists its commits",
            )
        exported = writer.write(session)
        exported = replace(exported, losses=(*losses_before, *exported.losses))
        if strict and exported.losses:
            _tell(invocation, writer, session, exported.losses, hidden=hidden)
            raise RenderError(
                f"{name} cannot hold the session without loss",
                hint="without --strict it is written anyway",
            )
        if not to_file and not as_json:
            _tell(invocation, writer, session, exported.losses, hidden=hidden)
            _print(invocation, exported)
            return
        path = _path(invocation, output or "", exported) if to_file else None
        written = _save(path, exported, force=force) if path else _length(exported)
        _tell(invocation, writer, session, exported.losses, hidden=hidden)
    if as_json:
        write_record(invocation, _record(session, name, exported, path, written))
    elif path:
        shown = path if os.path.isabs(output or "") else os.path.relpath(path)
        _tell_file(invocation, shown, len(session.turns), written, exported.resume)


def _tell_file(
    invocation: Invocation, path: str, messages: int, size_bytes: int, resume: str
) -> None:
    """Print the path and size of the file, and how to resume from it."""
    invocation.line(f"{safe(path)}: {counted(messages, 'message')}, {size(size_bytes)}")
    if resume:
        invocation.note(f"note: {one_line(resume, 400)}")


def _write_pages(
    invocation: Invocation, revision: str, folder: str, *, hidden: bool, force: bool, as_json: bool
) -> None:
    """Write a page for each session, and an index page."""
    disk = Disk()
    target = os.path.abspath(os.path.join(invocation.folder, folder))
    disk.make_directory(target)
    progress = Progress(invocation, shown=invocation.interactive and not as_json)
    entries: list[IndexEntry] = []
    with opened_store(invocation) as store:
        if revision == "HEAD":
            names = [name for name, _ in store.refs.iterate(BRANCHES)]
        else:
            names = [revision_of(store, revision)]
        for count, name in enumerate(names):
            session = read_session(store, name, hidden=hidden)
            exported = writer_named("html").write(session)
            _save_page(disk, os.path.join(target, exported.file_name), exported, force=force)
            entries.append(IndexEntry(session, exported.file_name))
            progress.tell("writing", count + 1, len(names))
        index = index_page(entries)
    progress.clear()
    path = os.path.join(target, index.file_name)
    _save_page(disk, path, index, force=force)
    if as_json:
        files = [{"session": each.session.id, "file": each.file} for each in entries]
        write_record(invocation, {"index": path, "sessions": files})
    else:
        shown = path if os.path.isabs(folder) else os.path.relpath(path)
        invocation.line(f"{safe(shown)}: {counted(len(entries), 'session')}")


def _save_page(disk: Disk, path: str, exported: Exported, *, force: bool) -> None:
    """Write a page; without `force` replace only files that Trace wrote."""
    own = disk.exists(path) and MADE_BY in (read_file(disk, path, limit=1 << 30) or b"")[:8_000]
    _save(path, exported, force=force or own)


def _form_of(output: str | None) -> str:
    """Return the format with this file name extension."""
    ending = os.path.splitext(output or "")[1].lower()
    found = [name for name, (_, suffix) in FORMS.items() if ending == suffix]
    if len(found) != 1:
        raise usage_error(
            "no format is given", f"--format names one of {', '.join(writer_names())}"
        )
    return found[0]


def _session(store: Store, revision: str, at: str, *, hidden: bool) -> ExportSession:
    if at and is_revision(store, at):
        if revision not in ("HEAD", "@"):
            raise usage_error(f"give {revision!r} or --at {at!r}, not both")
        revision, at = at, ""
    return read_session(store, revision_of(store, revision), at=at, hidden=hidden)


def _tell(
    invocation: Invocation,
    writer: Writer,
    session: ExportSession,
    losses: Sequence[Loss],
    *,
    hidden: bool,
) -> None:
    """Report omitted hidden messages, and losses of the format."""
    if session.hidden_count and not hidden and getattr(writer, "SHOWS_HIDDEN", False):
        count = counted(session.hidden_count, "message")
        invocation.note(f"note: without {count} hidden from the model; --hidden includes them")
    for loss in losses:
        invocation.note(f"lost: {one_line(str(loss), 300)}")


def _print(invocation: Invocation, exported: Exported) -> None:
    if not invocation.terminal:
        for chunk in exported.chunks():
            invocation.write(chunk)
        return
    if not exported.text:
        raise usage_error(
            "binary data cannot be written to a terminal", "-o FILE writes it to a file"
        )
    write_data(invocation, exported.to_bytes())


def _path(invocation: Invocation, output: str, exported: Exported) -> str:
    path = os.path.join(invocation.folder, output)
    if os.path.isdir(path):
        path = os.path.join(path, exported.file_name)
    return os.path.abspath(path)


def _save(path: str, exported: Exported, *, force: bool) -> int:
    try:
        return save_file(Disk(), path, exported, overwrite=force)
    except AlreadyExistsError as error:
        raise AlreadyExistsError(error.message, path=path, hint="--force overwrites it") from error


def _length(exported: Exported) -> int:
    return sum(len(chunk) for chunk in exported.chunks())


def _record(
    session: ExportSession, form: str, exported: Exported, path: str | None, size_bytes: int
) -> dict[str, Any]:
    return {
        "session": session.id,
        "thread": session.thread,
        "source_format": session.format or None,
        "ref": session.ref or None,
        "commit": str(session.commit),
        "format": form,
        "file": path,
        "size": size_bytes,
        "message_count": len(session.turns),
        "hidden_count": session.hidden_count,
        "losses": [
            {"what": loss.what, "count": loss.count, "detail": loss.detail}
            for loss in exported.losses
        ],
        "resume": exported.resume or None,
    }


def give_back_all(
    invocation: Invocation, store: Store, output: str | None, *, force: bool, as_json: bool
) -> None:
    """Write all kept source files to a folder; corrupt ones do not stop the others.

    Raises:
        AlreadyExistsError: a file exists; the files before it are written.
        InvalidInputError: no folder is given.
        ObjectNotFoundError, CorruptObjectError: a file cannot be restored; all others are written.
    """
    if output in (None, "-"):
        raise usage_error("--all requires a folder", "-o FOLDER")
    assert output is not None
    errors: list[TraceError] = []

    def lost(ref: str, error: TraceError) -> None:
        errors.append(error)
        invocation.note(f"note: {safe(ref)} cannot be restored: {one_line(error.message, 120)}")

    disk = Disk()
    taken: set[str] = set()
    placeholders = PlaceholderCount()
    whole = count = 0
    for kept in source_files(store, lost=lost):
        try:
            exported = _counted(restore_file(store, kept), placeholders)
        except (ObjectNotFoundError, CorruptObjectError) as error:
            lost(kept.ref, error)
            continue
        name = _free_name(kept, exported.file_name, taken)
        path = os.path.abspath(os.path.join(invocation.folder, output, name))
        disk.make_directory(os.path.dirname(path))
        whole += _save_source(disk, path, exported, force=force)
        count += 1
        if as_json:
            write_record(invocation, _source_record(store, kept, path))
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
    """Write a session's kept source file to a path or standard output.

    Raises:
        RevisionNotFoundError: the session has no kept file.
        AmbiguousRevisionError: it has several.
        AlreadyExistsError: the path exists.
    """
    kept = find_file(store, text, file=file)
    placeholders = PlaceholderCount()
    exported = _counted(restore_file(store, kept), placeholders)
    path = None
    if output not in (None, "-"):
        path = os.path.abspath(os.path.join(invocation.folder, output or ""))
        if os.path.isdir(path):
            path = os.path.join(path, exported.file_name)
        _save_source(Disk(), path, exported, force=force)
    elif not as_json:
        for chunk in exported.chunks():
            invocation.write(chunk)
    if as_json:
        write_record(invocation, _source_record(store, kept, path))
    elif path is not None:
        shown = path if os.path.isabs(output or "") else os.path.relpath(path)
        invocation.line(f"{safe(shown)}: {size(kept.size)}, as it was imported")
    _tell_placeholders(invocation, placeholders)


def kept_otherwise(store: Store, text: str, *, file: str) -> str:
    """Return "" if a session's file is kept, else the format to write it in.

    Raises:
        RevisionNotFoundError: there is no such session, or no writer for its format.
        AmbiguousRevisionError: several sessions, or files of one, match.
    """
    try:
        find_file(store, text, file=file)
    except RevisionNotFoundError as error:
        named = session_name(find_branch(store, text))
        if file or named is None or named[0] not in writer_names():
            hint = "--format exports any session; `trace import` keeps source files"
            raise RevisionNotFoundError(error.message, revision=text, hint=hint) from error
        return named[0]
    return ""


def _counted(exported: Exported, placeholders: PlaceholderCount) -> Exported:
    """Count a file's placeholders while it is written."""

    def chunks() -> Iterator[bytes]:
        for chunk in exported.chunks():
            placeholders.add(chunk)
            yield chunk

    return replace(exported, data=chunks())


def _tell_placeholders(invocation: Invocation, placeholders: PlaceholderCount) -> None:
    """Report how many placeholders the restored file has in place of secrets."""
    if placeholders.number:
        what = counted(placeholders.number, "placeholder")
        verb = "stands" if placeholders.number == 1 else "stand"
        invocation.note(f"note: {what} {verb} in place of secrets, whose values are not stored")


def _free_name(kept: SourceFile, name: str, taken: set[str]) -> str:
    """Return a path below the folder that no other file of this run has."""
    stem, ending = os.path.splitext(name)
    candidates = [
        os.path.join(kept.format, name),
        os.path.join(kept.format, f"{stem}-{kept.id}{ending}"),
        os.path.join(kept.format, f"{kept.session}-{stem}-{kept.id}{ending}"),
    ]
    free = next(each for each in candidates if each.casefold() not in taken)
    taken.add(free.casefold())
    return free


def _save_source(disk: Disk, path: str, exported: Exported, *, force: bool) -> int:
    try:
        return save_file(disk, path, exported, overwrite=force)
    except AlreadyExistsError as error:
        raise AlreadyExistsError(error.message, path=path, hint="--force overwrites it") from error


def _source_record(store: Store, kept: SourceFile, path: str | None) -> dict[str, Any]:
    hasher = Digester()
    placeholders = PlaceholderCount()
    for chunk in restore_file(store, kept).chunks():
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
        "placeholders": placeholders.number,
    }
