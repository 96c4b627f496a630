"""`trace export`: a session as a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import trace_store
from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, is_revision, opened, overwriting
from trace_cli.porcelain.progress import Progress
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import write_data
from trace_cli.render.tables import counted, size
from trace_cli.runtime import Invocation
from trace_store.errors import (
    NotFoundError,
    RenderError,
    RevisionNotFoundError,
    TraceError,
)
from trace_store.exporters import writer_names
from trace_store.exporters.contract import Exported, ExportSession, Loss
from trace_store.exporters.registry import FORMS
from trace_store.repo.repository import Repo
from trace_store.sessions.transcripts import SourceFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results


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
    Option("-o --output", "output", "Write to FILE, or to a generated name in FOLDER/", "FILE"),
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
) -> Results:
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
        yield from _write_pages(invocation, revision, html_folder, hidden=hidden, force=force)
        return
    to_file = output not in (None, "-")
    if invocation.as_json and output == "-":
        raise usage_error("--json and `-o -` cannot be combined: both write to standard output")
    if force and not to_file:
        raise usage_error("--force requires -o FILE")
    if native or everything or file:
        if not native or form or at or hidden:
            raise usage_error(
                "--native excludes --format, --at and --hidden; --all and --file require --native"
            )
        if everything and not to_file:
            raise usage_error("--all requires a folder", "-o FOLDER")
    else:
        form = form or _form_of(output)
    target = os.path.join(invocation.folder, output or "") if to_file else None
    with opened(invocation) as here, overwriting:
        if everything:
            yield from _write_originals(invocation, here, target or "", force=force)
            return
        if native and (kept := _original(here, revision, file=file)) is not None:
            yield from _write_original(invocation, here, kept, output, force=force)
            return
        session = _session(here, revision, at, hidden=hidden)
        exported = _render(invocation, here, session, form or "", hidden=hidden, strict=strict)
        if not to_file and not invocation.as_json:
            _tell(invocation, exported)
            _print(invocation, exported)
            return
        saved = exported.save(target, overwrite=force) if target else None
        written = saved.size if saved else sum(len(chunk) for chunk in exported.chunks())
        _tell(invocation, exported)
    path = saved.path if saved else None
    record = _record(session, form or session.format, exported, path, written)
    yield record, () if path is None else (_file_line(path, output, len(session.turns), written),)
    if path and exported.resume and not invocation.as_json:
        invocation.note(f"note: {one_line(exported.resume, 400)}")


def _original(here: Repo, revision: str, *, file: str) -> SourceFile | None:
    """Return the imported file of a session; None if it was not kept, but a writer can create it from the messages.

    Raises:
        RevisionNotFoundError: there is no such session, or its file was not kept and no writer has its format.
        AmbiguousRevisionError: several sessions, or files of one, match.
    """
    try:
        return here.transcripts.original(revision, file=file)
    except RevisionNotFoundError as error:
        try:
            form = "" if file else here.sessions.read(revision).format
        except NotFoundError:
            form = ""
        if form not in writer_names():
            advice = "--format exports any session; `trace import` keeps source files"
            error.data.setdefault("hint", advice)
            raise
    return None


def _render(
    invocation: Invocation,
    here: Repo,
    session: ExportSession,
    form: str,
    *,
    hidden: bool,
    strict: bool,
) -> Exported:
    """Return a session in a format; what a strict export would lose is printed before the error."""
    try:
        return here.sessions.export(session, form, hidden=hidden, strict=strict)
    except RenderError as error:
        losses: Sequence[Loss] = getattr(error, "losses", ())
        _tell_losses(invocation, losses)
        advice = (
            "without --strict it is written anyway" if losses else "`trace log` lists its commits"
        )
        error.data.setdefault("hint", advice)
        raise


def _display_path(path: str, output: str | None) -> str:
    """Return a path as the user named it: absolute or relative."""
    return path if os.path.isabs(output or "") else os.path.relpath(path)


def _file_line(path: str, output: str | None, messages: int, size_bytes: int) -> str:
    """Return the line with the path and size of the file."""
    shown = safe(_display_path(path, output))
    return f"{shown}: {counted(messages, 'message')}, {size(size_bytes)}"


def _write_pages(
    invocation: Invocation, revision: str, folder: str, *, hidden: bool, force: bool
) -> Results:
    """Write a page for each session, and an index page."""
    with opened(invocation) as here, overwriting, Progress(invocation) as progress:
        made = here.sessions.export_pages(
            os.path.join(invocation.folder, folder),
            *([] if revision == "HEAD" else [revision]),
            hidden=hidden,
            overwrite=force,
            progress=lambda done, whole: progress.tell("writing", done, whole),
        )
    files = [{"session": session, "file": file} for session, file in made.pages]
    count = counted(len(made.pages), "session")
    text = f"{safe(_display_path(made.index, folder))}: {count}"
    yield {"index": made.index, "sessions": files}, text


def _form_of(output: str | None) -> str:
    """Return the format with this file name extension."""
    ending = os.path.splitext(output or "")[1].lower()
    found = [name for name, (_, suffix) in FORMS.items() if ending == suffix]
    if len(found) != 1:
        raise usage_error(
            "no format is given", f"--format names one of {', '.join(writer_names())}"
        )
    return found[0]


def _session(here: Repo, revision: str, at: str, *, hidden: bool) -> ExportSession:
    if at and is_revision(here, at):
        if revision not in ("HEAD", "@"):
            raise usage_error(f"give {revision!r} or --at {at!r}, not both")
        revision, at = at, ""
    return here.sessions.read(revision, at=at, hidden=hidden)


def _tell(invocation: Invocation, exported: Exported) -> None:
    """Report omitted hidden messages, and losses of the format."""
    if exported.hidden_count:
        count = counted(exported.hidden_count, "message")
        invocation.note(f"note: without {count} hidden from the model; --hidden includes them")
    _tell_losses(invocation, exported.losses)


def _tell_losses(invocation: Invocation, losses: Sequence[Loss]) -> None:
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


def _record(
    session: ExportSession, form: str, exported: Exported, path: str | None, size_bytes: int
) -> dict[str, Any]:
    return {
        "session": session.id,
        "thread": session.thread,
        "source_format": session.format or None,
        "ref": session.ref or None,
        "commit": session.commit,
        "format": form,
        "file": path,
        "size": size_bytes,
        "message_count": len(session.turns),
        "hidden_count": session.hidden_count,
        "losses": exported.losses,
        "resume": exported.resume or None,
    }


def _write_originals(invocation: Invocation, here: Repo, folder: str, *, force: bool) -> Results:
    """Write all kept source files to a folder; corrupt ones do not stop the others.

    Raises:
        AlreadyExistsError: a file exists; the files before it are written.
        ObjectNotFoundError, CorruptObjectError: a file cannot be restored; all others are written.
    """
    errors: list[TraceError] = []

    def lost(ref: str, error: TraceError) -> None:
        errors.append(error)
        invocation.note(f"note: {safe(ref)} cannot be restored: {one_line(error.message, 120)}")

    saved = here.transcripts.export_originals(folder, overwrite=force, lost=lost)
    whole = sum(each.source.size for each in saved)
    yield saved, f"{counted(len(saved), 'file')}: {size(whole)}"
    _tell_placeholders(invocation, sum(each.placeholders for each in saved))
    if errors:
        raise errors[0]


def _write_original(
    invocation: Invocation,
    here: Repo,
    kept: SourceFile,
    output: str | None,
    *,
    force: bool,
) -> Results:
    """Write a kept source file to a path or standard output.

    Raises:
        AlreadyExistsError: the path exists.
    """
    exported = here.transcripts.export_original(kept)
    path = None
    if output not in (None, "-"):
        target = os.path.join(invocation.folder, output or "")
        path = exported.save(target, overwrite=force).path
    elif not invocation.as_json:
        for chunk in exported.chunks():
            invocation.write(chunk)
    if path is not None or invocation.as_json:
        shown = "" if path is None else safe(_display_path(path, output))
        more = {"file": path, "blake3": exported.blake3, "placeholders": exported.placeholders}
        text = f"{shown}: {size(kept.size)}, as it was imported"
        yield lambda: trace_store.record(kept, **more), text
    _tell_placeholders(invocation, exported.placeholders)


def _tell_placeholders(invocation: Invocation, count: int) -> None:
    """Report how many placeholders the restored file has in place of secrets."""
    if count:
        what = counted(count, "placeholder")
        verb = "stands" if count == 1 else "stand"
        invocation.note(f"note: {what} {verb} in place of secrets, whose values are not stored")
