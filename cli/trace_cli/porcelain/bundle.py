"""`trace bundle`: refs and their objects in one file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import trace_store
from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, QUIET, finish, opened, overwriting
from trace_cli.porcelain.progress import Progress
from trace_cli.render.escape import safe
from trace_cli.render.tables import counted, paint, size
from trace_cli.runtime import Invocation
from trace_cli.subcommands import Group
from trace_store import Repo
from trace_store.base.oid import ObjectId
from trace_store.bundles.create import BundleReport
from trace_store.bundles.ingest import (
    BEHIND,
    CREATED,
    DIVERGED,
    FORWARDED,
    KEPT,
    UNCHANGED,
    ImportedBundle,
    RefOutcome,
)
from trace_store.errors import (
    ConflictError,
    RepositoryNotFoundError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results

STREAM = "-"
_OUTCOME_TEXTS = {
    CREATED: ("created", "green"),
    FORWARDED: ("fast-forwarded", "green"),
    UNCHANGED: ("unchanged", "dim"),
    BEHIND: ("unchanged: it is ahead of the bundle", "dim"),
    DIVERGED: ("diverged: it has two tips now", "yellow"),
    KEPT: ("kept: it differs here", "yellow"),
}

FILE = Argument("FILE", "file", "The bundle; - reads standard input")


@takes(
    Argument("FILE", "file", "The bundle to write; - for standard output"),
    Argument(
        "REV...",
        "revisions",
        "Branches, tags, session ids or A..B (default: the current branch)",
        ANY,
        completes="COMMIT",
    ),
    Option("--all", "everything", "All refs, without the trash"),
    Option("--trash", "trash", "With --all: also the trash"),
    Option(
        "--since",
        "since",
        "Leave out everything reachable from REV: the receiver has it",
        "REV",
        many=True,
        completes="COMMIT",
    ),
    Option("--with-sessions", "sessions", "Also the sessions that the trajectories mention"),
    Option("--force", "force", "Overwrite FILE"),
    Option("--level", "level", "Compression level", "N", number=True, least=1, most=19, default=9),
    JSON,
    QUIET,
)
def create(
    invocation: Invocation,
    *,
    file: str,
    revisions: list[str],
    everything: bool,
    trash: bool,
    since: list[str],
    sessions: bool,
    force: bool,
    level: int,
) -> Results:
    """Write refs and everything reachable from them to one file.

    A branch includes the branches below its name, and a session includes its kept source files. A trajectory has no
    text of the sessions behind it; --with-sessions adds the branches that have them. With --since or a range, the
    bundle holds only what is new, and can be imported where the rest exists.

        trace bundle create work.bundle --all
        trace bundle create - main | ssh host 'cd project && trace bundle import -'
        trace bundle create week.bundle --all --since 'main@{7 days ago}'
    """
    stream = file == STREAM
    if stream and invocation.terminal:
        raise usage_error(
            "a bundle cannot be written to a terminal", "redirect it to a file or a program"
        )
    if stream and invocation.as_json:
        raise usage_error("--json and `-` cannot be combined: both write to standard output")
    if trash and not everything:
        raise usage_error("--trash requires --all")
    with (
        opened(invocation) as here,
        overwriting,
        Progress(invocation) as progress,
    ):
        report = here.bundles.create(
            invocation.write if stream else file,
            *revisions,
            everything=everything,
            trash=trash,
            since=since,
            sessions=sessions,
            overwrite=force,
            level=level,
            scan=not invocation.quiet,
            progress=lambda done, whole: progress.tell(file, done, whole),
        )
    if report.secrets and not (invocation.as_json or invocation.quiet):
        invocation.note(
            f"warning: the bundle holds {counted(report.secrets, 'secret')}; `trace secrets scan` shows where"
        )
    name = "standard output" if stream else safe(file)
    lines = [f"{name}: {_totals(report)}"]
    if report.prerequisites:
        lines.append(f"it requires {_first_ids(report.prerequisites)}")
    if not stream:
        yield _with_path(file, report), lines
        return
    for line in () if invocation.quiet else lines:
        invocation.note(line)


@takes(FILE, JSON, QUIET)
def verify(invocation: Invocation, *, file: str) -> Results:
    """Verify a bundle by rehashing all objects.

    In a repository, also check that it has the commits that the bundle needs; if not, the exit code is 4. A corrupt
    bundle gives 12.
    """
    with _repo_or_empty(invocation) as here:
        alone = not here.store.local  # without a repository, only the bundle is verified
        with Progress(invocation) as progress:
            report = here.bundles.verify(
                _source(invocation, file),
                alone=alone,
                progress=lambda done, whole: progress.tell(file, done, whole),
            )
    lines = [f"{_file_name(file)}: sound, {_totals(report)}"]
    if report.prerequisites:
        where = "not checked, since there is no repository here" if alone else "found here"
        lines.append(f"it requires {_first_ids(report.prerequisites)}: {where}")
    yield _with_path(file, report), lines


@takes(FILE, JSON)
def list_(invocation: Invocation, *, file: str) -> Results:
    """List the refs of a bundle: one line per tip, with its id and the ref's name.

    Only the start of the file is read.
    """
    with Repo.memory() as unrelated:  # any repository can read a bundle
        header = unrelated.bundles.list(_source(invocation, file))
    yield header, (f"{tip} {safe(ref.name)}" for ref in header.refs for tip in ref.tips)


@takes(
    FILE,
    Option(
        "--as",
        "prefix",
        "Import main as PREFIX/main, and so on",
        "PREFIX",
        default="",
        completes="none",
    ),
    JSON,
    QUIET,
)
def import_(invocation: Invocation, *, file: str, prefix: str) -> Results:
    """Import the objects and refs of a bundle.

    Everything is checked before anything is stored. New refs are created and branches fast-forwarded. A branch that has
    new commits on both sides gets two tips; `trace merge` joins them. A tag that differs here is kept, and the exit
    code is 3. Importing again changes nothing. If HEAD has no commit yet, it moves to the bundle's branch.
    """
    with opened(invocation) as here:
        with Progress(invocation) as progress:
            report = here.bundles.import_(
                _source(invocation, file),
                prefix=prefix,
                progress=lambda done, whole: progress.tell(file, done, whole),
            )
        finish(invocation, here)
    yield _with_path(file, report), _import_lines(invocation, file, report)
    kept = [each.name for each in report.refs if each.outcome == KEPT]
    if kept:
        raise ConflictError(
            f"{counted(len(kept), 'ref')} of the bundle differ{'s' if len(kept) == 1 else ''}"
            f" here, such as {kept[0]}; everything else was imported",
            refs=kept,
            hint="--as PREFIX imports all refs under a prefix",
        )


def _with_path(file: str, report: BundleReport | ImportedBundle) -> Callable[[], dict[str, Any]]:
    return lambda: trace_store.record(report, path=file)


def _source(invocation: Invocation, file: str) -> Any:
    return invocation.stdin.read if file == STREAM else file


def _file_name(file: str) -> str:
    return "standard input" if file == STREAM else safe(file)


def _repo_or_empty(invocation: Invocation) -> opened | Repo:
    """Return the repository of this folder, or an empty one; one given with --dir must exist."""
    try:
        return opened(invocation, quiet=True)
    except RepositoryNotFoundError:
        if invocation.directory is not None:
            raise
        return Repo.memory()


def _totals(report: BundleReport) -> str:
    refs, objects = counted(len(report.refs), "ref"), counted(report.object_count, "object")
    return f"{refs}, {objects}, {size(report.size_bytes)}"


def _first_ids(oids: Sequence[ObjectId]) -> str:
    more = f" and {len(oids) - 3} more" if len(oids) > 3 else ""
    return ", ".join(oid.short() for oid in oids[:3]) + more


def _import_lines(invocation: Invocation, file: str, report: ImportedBundle) -> Iterator[str]:
    for each in report.refs:
        text, style = _OUTCOME_TEXTS[each.outcome]
        yield f"{_short_ref(each)}: {paint(invocation, text, style)}{_new_tips(each)}"
    objects = counted(report.bundle.object_count, "object")
    note = "" if report.packs or not report.bundle.object_count else ", all of them already present"
    yield f"{_file_name(file)}: {counted(len(report.refs), 'ref')}, {objects}{note}"
    if report.head:
        yield f"HEAD is on {safe(report.head.removeprefix('refs/heads/'))}"


def _short_ref(each: RefOutcome) -> str:
    name = each.name
    for prefix in ("refs/heads/", "refs/"):
        if name.startswith(prefix):
            return safe(name[len(prefix) :])
    return safe(name)


def _new_tips(each: RefOutcome) -> str:
    if each.outcome in (UNCHANGED, BEHIND):
        return ""
    return ", " + ", ".join(tip.short() for tip in each.theirs)


GROUP = Group(
    "",
    {"create": create, "verify": verify, "list": list_, "import": import_},
)
