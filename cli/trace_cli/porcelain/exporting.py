"""`trace export`: a session as a file, to read or to go on from."""

from __future__ import annotations

import os

from trace_cli import porcelain
from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.opening import JSON, is_revision, opened_store
from trace_cli.porcelain.progress import Progress
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import write_data, write_record
from trace_cli.render.tables import counted, size
from trace_store.errors import AlreadyExistsError, RenderError
from trace_store.exporters import Exported, Loss, read_session
from trace_store.exporters.html.index import Entry, index_page
from trace_store.exporters.html.page import MADE_BY
from trace_store.exporters.registry import FORMS, writer_named, writer_names
from trace_store.exporters.saving import save_file
from trace_store.files import Disk, read_file
from trace_store.refs import BRANCHES
from trace_store.sessions import revision_of
from trace_store.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from trace_cli.runtime import Invocation
    from trace_store.exporters import ExportSession, Writer
    from trace_store.store import Store


def forms(incomplete: str) -> list[str]:
    """Return the forms whose names begin like this."""
    return [name for name in writer_names() if name.startswith(incomplete)]


@takes(
    Argument(
        "SESSION",
        "revision",
        "A session's id or the beginning of it, a branch, or any revision",
        OPTIONAL,
        default="HEAD",
        completes="COMMIT",
    ),
    Option(
        "-f --format",
        "form",
        f"One of {', '.join(sorted(FORMS))}; told from FILE if not given",
        "FORMAT",
        completes="EXPORTED",
    ),
    Option(
        "--native", "native", "Give back the file that the session was imported from, byte for byte"
    ),
    Option("--all", "everything", "With --native: every file, into the folder of -o"),
    Option("--file", "file", "With --native: which of several files", "ID", default=""),
    Option("-o --output", "output", "Write to FILE; in a folder, under a name of its own", "FILE"),
    Option(
        "--html",
        "html_folder",
        "Write a page for each session, and an index over them, into a folder",
        "DIR",
    ),
    Option("--at", "at", "A revision, or a time: the session as it was then", "WHEN", default=""),
    Option(
        "--hidden",
        "hidden",
        "Show too what the model is not shown: replaced, removed, skipped messages",
    ),
    Option("--strict", "strict", "Write nothing when anything would be lost"),
    Option("--force", "force", "Overwrite FILE when it is there already"),
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

    What is written is what the model is shown: the compiled context of the session, or of any revision. What of it the
    format cannot hold is listed on standard error; with --strict nothing is written then, and the exit code is 7.

    With --native it is the file that the session was imported from, byte for byte and checked by hash, whatever was
    committed since; how many placeholders stand in it where secrets were is said on standard error. Where its records
    were not kept, the session is written in the format of that file instead.

    Without -o the file goes to standard output. With --json a report is printed instead, and without -o nothing else is
    done. Further formats come from packages with entry points of the group `trace_store.exporters`.

    With --html every session of the repository is written, or SESSION alone, and `index.html` over them, which searches
    titles and prompts. Pages that Trace wrote are replaced.

        trace export -o session.html
        trace export --html sessions
        trace export 062a8bdd --format markdown | less
        trace export --native 062a8bdd > session.jsonl
    """
    if html_folder is not None:
        if native or everything or file or form or at or output or strict:
            raise usage_error("--html goes with SESSION, --hidden, --force and --json alone")
        _write_pages(invocation, revision, html_folder, hidden=hidden, force=force, as_json=as_json)
        return
    to_file = output not in (None, "-")
    if as_json and output == "-":
        raise usage_error("the report and the session cannot both go to standard output")
    if force and not to_file:
        raise usage_error("--force goes with -o FILE")
    losses_before: tuple[Loss, ...] = ()
    if native or everything or file:
        if not native or form or at or hidden:
            raise usage_error(
                "--native goes with --all or --file, and without --format, --at, --hidden"
            )
        with opened_store(invocation) as store:
            if everything:
                porcelain.give_back_all(invocation, store, output, force=force, as_json=as_json)
                return
            form = porcelain.kept_otherwise(store, revision, file=file)
            if not form:
                porcelain.give_back(
                    invocation, store, revision, output, file=file, force=force, as_json=as_json
                )
                return
        losses_before = (Loss("original-bytes", 1),)
    name = form or _form_of(output)
    writer = writer_named(name)
    if hidden and not getattr(writer, "SHOWS_HIDDEN", False):
        raise usage_error(f"{name} has no place for what the model is not shown")
    with opened_store(invocation) as store:
        session = _session(store, revision, at, hidden=hidden)
        if not session.turns and not getattr(writer, "SHOWS_HIDDEN", False):
            raise RenderError(
                f"{one_line(session.id)} has no messages that {name} could hold",
                hint="`trace log` lists what is in it",
            )
        exported = writer.write(session)
        exported = replace(exported, losses=(*losses_before, *exported.losses))
        if strict and exported.losses:
            _tell(invocation, writer, session, exported.losses, hidden=hidden)
            raise RenderError(
                f"the session does not go into {name} without loss",
                hint="without --strict it is written all the same",
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
    """Write a page for each session, and the index over them."""
    disk = Disk()
    target = os.path.abspath(os.path.join(invocation.folder, folder))
    disk.make_directory(target)
    progress = Progress(invocation, shown=invocation.interactive and not as_json)
    entries: list[Entry] = []
    with opened_store(invocation) as store:
        if revision == "HEAD":
            names = [name for name, _ in store.refs.iterate(BRANCHES)]
        else:
            names = [revision_of(store, revision)]
        for count, name in enumerate(names):
            session = read_session(store, name, hidden=hidden)
            exported = writer_named("html").write(session)
            _save_page(disk, os.path.join(target, exported.file_name), exported, force=force)
            entries.append(Entry(session, exported.file_name))
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
    """Write a page; only what Trace wrote is replaced without being asked to."""
    own = disk.exists(path) and MADE_BY in (read_file(disk, path, limit=1 << 30) or b"")[:8_000]
    _save(path, exported, force=force or own)


def _form_of(output: str | None) -> str:
    """Return the only form whose files end like this one."""
    ending = os.path.splitext(output or "")[1].lower()
    found = [name for name, (_, suffix) in FORMS.items() if ending == suffix]
    if len(found) != 1:
        raise usage_error(
            "the format is not given", f"--format names one of {', '.join(writer_names())}"
        )
    return found[0]


def _session(store: Store, revision: str, at: str, *, hidden: bool) -> ExportSession:
    if at and is_revision(store, at):
        if revision not in ("HEAD", "@"):
            raise usage_error(f"{revision!r} and --at {at!r} are two revisions; give one")
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
    """Say what is not in the file: what was hidden from the model, and what the form cannot hold."""
    if session.hidden_count and not hidden and getattr(writer, "SHOWS_HIDDEN", False):
        count = counted(session.hidden_count, "message")
        invocation.note(f"note: without {count} that the model is not shown; --hidden shows all")
    for loss in losses:
        invocation.note(f"lost: {one_line(str(loss), 300)}")


def _print(invocation: Invocation, exported: Exported) -> None:
    if not invocation.terminal:
        for chunk in exported.chunks():
            invocation.write(chunk)
        return
    if not exported.text:
        raise usage_error("these bytes are not for a terminal", "-o FILE writes them to a file")
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
