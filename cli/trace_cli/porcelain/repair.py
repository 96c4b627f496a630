"""`trace repair`: a valid branch from a broken one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import trace_store
from trace_cli import porcelain
from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import EXIT_INVALID, EXIT_OK, usage_error
from trace_cli.porcelain.common import JSON, QUIET, finish, opened
from trace_cli.porcelain.progress import Progress
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import counted, number, paint
from trace_cli.runtime import Invocation
from trace_store import Repo, Store
from trace_store.context.faults import PROVIDERS, Fault
from trace_store.history.branch_repair import BROKEN, REPAIRED, SOUND, ContextRepairReport
from trace_store.importers.report import FileReport, ImportReport

Found = tuple[ContextRepairReport, FileReport | None]
"""The result for a branch, and the file that the same command imported it from."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import ResultsAndCode


def providers(incomplete: str) -> list[str]:
    """Complete the name of a provider."""
    return [name for name in PROVIDERS if name.startswith(incomplete)]


@takes(
    Argument(
        "SESSION",
        "session",
        "A branch or session id (prefix; default: HEAD)",
        OPTIONAL,
        completes="COMMIT",
    ),
    Option("--file", "file", "Import this transcript and repair it", "FILE"),
    Option(
        "--format",
        "form",
        "The format of FILE (default: detected)",
        "FORMAT",
        completes="IMPORTED",
    ),
    Option(
        "--provider",
        "provider",
        f"Only faults that NAME rejects: {', '.join(PROVIDERS)}",
        "NAME",
        many=True,
        completes="PROVIDER",
    ),
    Option("-n --dry-run", "dry_run", "Write nothing; exit code 7 if a fault is found"),
    Option("--in-place", "in_place", "Commit to the branch itself"),
    JSON,
    QUIET,
)
def repair(
    invocation: Invocation,
    *,
    session: str | None,
    file: str | None,
    form: str | None,
    provider: list[str],
    dry_run: bool,
    in_place: bool,
) -> ResultsAndCode:
    """Find what a provider would reject, and create a valid branch.

    Calls without results, results without calls, truncated turns, duplicate messages and the like are fixed in one
    commit on the branch `repaired/NAME`, on top of the broken one. Nothing is lost: the broken branch is unchanged, and
    hidden or edited messages can be restored. A missing result is never invented; an error result says that it was not
    recorded.

    Each fault is a line: message, stable code, problem, fix. A valid context gets no commit.

        trace repair 5f0c2a54
        trace repair --dry-run --file session.jsonl
    """
    chosen = tuple(provider)
    if file is not None and session is not None:
        raise usage_error("give --file or SESSION, not both")
    if form is not None and file is None:
        raise usage_error("--format requires --file")
    found: list[Found]
    taken: ImportReport | None = None
    if file is not None and dry_run:
        # A dry run on a transcript needs no repository and stores nothing.
        with Repo(Store.memory(), environment=invocation.environment) as here:
            taken = _imported(invocation, here, file, form)
            found = _each_branch(here, taken.files, chosen, dry_run=True)
        return (yield from _tell(invocation, found, taken))
    with opened(invocation) as here:
        if file is not None:
            taken = _imported(invocation, here, file, form)
            found = _each_branch(here, taken.files, chosen, in_place=in_place)
        else:
            report = here.sessions.repair(
                session or "HEAD", providers=chosen, in_place=in_place, dry_run=dry_run
            )
            found = [(report, None)]
        if not dry_run:
            finish(invocation, here)
            if not invocation.quiet:
                porcelain.in_progress.tell_stopped(
                    invocation, here.in_progress, [each.repaired for each, _ in found]
                )
    return (yield from _tell(invocation, found, taken))


def _imported(invocation: Invocation, here: Repo, path: str, form: str | None) -> ImportReport:
    stdin = invocation.stdin if path == "-" else None
    with Progress(invocation) as progress:
        report = here.transcripts.import_(
            path, format=form or "", progress=progress.tell, stdin=stdin
        )
    if not (invocation.as_json or invocation.quiet):
        for line in porcelain.import_.report_lines(invocation, report):
            invocation.line(line)
    return report


def _each_branch(
    here: Repo,
    files: Sequence[FileReport],
    providers: Sequence[str],
    *,
    in_place: bool = False,
    dry_run: bool = False,
) -> list[Found]:
    """Repair each imported branch: sessions, subagents and rewinds."""
    return [
        (
            here.sessions.repair(
                branch.ref, providers=providers, in_place=in_place, dry_run=dry_run
            ),
            file,
        )
        for file in files
        for branch in file.branches
    ]


def _tell(
    invocation: Invocation,
    found: Sequence[Found],
    taken: ImportReport | None,
) -> ResultsAndCode:
    """Yield the results and return the exit code, or raise the first import error."""
    for report, file in found:
        skips = () if file is None else file.skips
        yield (lambda r=report, s=skips: trace_store.record(r, skips=s)), _lines(invocation, report)
    if taken is not None and taken.errors:
        raise taken.errors[0]
    return EXIT_INVALID if any(report.outcome == BROKEN for report, _ in found) else EXIT_OK


def _lines(invocation: Invocation, report: ContextRepairReport) -> Iterator[str]:
    name = _short(report.ref) or report.commit.short()
    takers = ", ".join(sorted(report.adaptations))
    if report.outcome == SOUND:
        invocation.note(f"nothing to repair: {name} is valid for {takers}")
        return
    if not report.faults:
        where = _short(report.repaired)
        invocation.note(f"nothing to repair: {where} continues {name} and is valid for {takers}")
        return
    for fault in report.faults:
        yield _line(invocation, fault)
    found = counted(len(report.faults), "fault")
    where = paint(invocation, _short(report.repaired), "green")
    if report.outcome == REPAIRED and report.result is not None:
        at = report.result.oid.short()
        yield f"{found}: repaired as {where} at {at}, valid for {takers}"
    else:
        yield f"{found}: {name} would be repaired as {where}"
    adapted = [
        f"{number(len(repairs))} for {provider}"
        for provider, repairs in sorted(report.adaptations.items())
        if repairs
    ]
    if adapted:
        invocation.note(
            f"note: compile still omits what a provider does not support: {', '.join(adapted)}"
        )


def _line(invocation: Invocation, fault: Fault) -> str:
    code = paint(invocation, fault.code, "red")
    alone = "" if len(fault.providers) == len(PROVIDERS) else _named(fault.providers)
    what = f"{one_line(fault.detail, 160)}{alone}; {one_line(fault.done, 120)}"
    return f"{one_line(fault.where)} {code}: {what}"


def _named(providers: Sequence[str]) -> str:
    return f" ({', '.join(providers)})"


def _short(ref: str) -> str:
    return safe(ref.removeprefix("refs/heads/"))
