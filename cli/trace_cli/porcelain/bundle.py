"""`trace bundle`: refs and all they lead to, in one file that goes anywhere."""

from __future__ import annotations

from contextlib import contextmanager

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, QUIET, finish, opened_store
from trace_cli.porcelain.progress import Progress
from trace_cli.render.escape import safe
from trace_cli.render.records import write_record
from trace_cli.render.tables import counted, paint, size
from trace_cli.subcommands import Group
from trace_store import secrets
from trace_store.bundles import ingest as outcomes
from trace_store.bundles.create import create_bundle
from trace_store.bundles.ingest import import_bundle
from trace_store.bundles.verify import list_bundle, verify_bundle
from trace_store.errors import (
    AlreadyExistsError,
    ConflictError,
    ObjectNotFoundError,
    RepositoryNotFoundError,
)
from trace_store.store.discovery import find
from trace_store.store.handle import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from trace_cli.runtime import Invocation
    from trace_store.bundles.create import BundleReport
    from trace_store.bundles.format import BundledRef
    from trace_store.bundles.ingest import ImportedBundle, RefOutcome
    from trace_store.oid import ObjectId

STREAM = "-"
_SAYINGS = {
    outcomes.CREATED: ("created", "green"),
    outcomes.FORWARDED: ("went forward", "green"),
    outcomes.UNCHANGED: ("unchanged", "dim"),
    outcomes.BEHIND: ("unchanged: it is ahead of the bundle", "dim"),
    outcomes.DIVERGED: ("diverged: it has a second tip now", "yellow"),
    outcomes.KEPT: ("kept: it stands elsewhere here", "yellow"),
}

FILE = Argument("FILE", "file", "The bundle; - is standard input")


@takes(
    Argument("FILE", "file", "The bundle to write; - is standard output"),
    Argument(
        "REV...",
        "words",
        "Branches, tags, sessions by their id, or A..B; HEAD's branch if not given",
        ANY,
        completes="COMMIT",
    ),
    Option("--all", "everything", "Every ref, but for what is in the trash"),
    Option("--trash", "trash", "With --all: the trash too"),
    Option(
        "--since", "since", "Leave out what this leads to; the receiver has it", "REV", many=True
    ),
    Option("--force", "force", "Overwrite FILE when it is there already"),
    Option(
        "--level", "level", "How hard to compress", "N", number=True, least=1, most=19, default=9
    ),
    JSON,
    QUIET,
)
def create(
    invocation: Invocation,
    *,
    file: str,
    words: list[str],
    everything: bool,
    trash: bool,
    since: list[str],
    force: bool,
    level: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write refs and all they lead to into one file.

    A branch goes with the branches under it, and a session with the files that are kept of it. With --since, or a
    range, only what is new goes into the bundle, and it can be imported where the rest is already.

        trace bundle create work.bundle --all
        trace bundle create - main | ssh host 'cd project && trace bundle import -'
        trace bundle create week.bundle --all --since 'main@{7 days ago}'
    """
    stream = file == STREAM
    if stream and invocation.terminal:
        raise usage_error("a bundle is not for a terminal", "send it to a file or a program")
    if stream and as_json:
        raise usage_error("the bundle and the report cannot both go to standard output")
    if trash and not everything:
        raise usage_error("--trash goes with --all")
    progress = Progress(invocation, shown=invocation.interactive and not quiet)
    with opened_store(invocation, quiet=quiet) as store, _advised():
        find = secrets.guard.Guard.of(store, invocation.environment).scanner.find_bytes
        found: set[tuple[str, str]] = set()
        try:
            report = create_bundle(
                store,
                invocation.write if stream else file,
                words,
                everything=everything,
                trash=trash,
                since=since,
                overwrite=force,
                level=level,
                progress=lambda done, whole: progress.tell(file, done, whole),
                look=None
                if quiet
                else lambda data: found.update((each.rule, each.id) for each in find(data)),
            )
        finally:
            progress.clear()
    if quiet:
        return
    if found and not as_json:
        invocation.note(
            f"warning: the bundle holds {counted(len(found), 'secret')}; `trace secrets scan` shows where"
        )
    if as_json:
        write_record(invocation, _record(file, report, len(found)))
        return
    say = invocation.note if stream else invocation.line
    name = "standard output" if stream else safe(file)
    say(f"{name}: {_contents(report)}")
    if report.prerequisites:
        say(f"it requires {_named(report.prerequisites)}")


@takes(FILE, JSON, QUIET)
def verify(invocation: Invocation, *, file: str, as_json: bool, quiet: bool) -> None:
    """Read a bundle to its end and hash everything again.

    In a repository it is also looked whether what the bundle builds upon is there; if not, the exit code is 4. A bundle
    that is damaged gives 12.
    """
    progress = Progress(invocation, shown=invocation.interactive and not quiet)
    store = _store(invocation)
    try:
        with _advised():
            report = verify_bundle(
                _source(invocation, file),
                store,
                progress=lambda done, whole: progress.tell(file, done, whole),
            )
    finally:
        progress.clear()
        if store is not None:
            store.close()
    if quiet:
        return
    if as_json:
        write_record(invocation, _record(file, report))
        return
    invocation.line(f"{_shown(file)}: sound, {_contents(report)}")
    if report.prerequisites:
        here = "no repository is here to look for it" if store is None else "which is here"
        invocation.line(f"it requires {_named(report.prerequisites)}: {here}")


@takes(FILE, JSON)
def list_(invocation: Invocation, *, file: str, as_json: bool) -> None:
    """List the refs of a bundle: a line for each tip, its id and the ref's name.

    Only the beginning of the bundle is read.
    """
    header = list_bundle(_source(invocation, file))
    if as_json:
        record = {
            "refs": _refs(header.refs),
            "prerequisites": [str(oid) for oid in header.prerequisites],
            "objects": header.object_count,
            "head": header.head or None,
        }
        write_record(invocation, record)
        return
    for ref in header.refs:
        for tip in ref.tips:
            invocation.line(f"{tip} {safe(ref.name)}")


@takes(
    FILE,
    Option(
        "--as",
        "prefix",
        "Import main as PREFIX/main, and so every ref",
        "PREFIX",
        default="",
        completes="none",
    ),
    JSON,
    QUIET,
)
def import_(invocation: Invocation, *, file: str, prefix: str, as_json: bool, quiet: bool) -> None:
    """Take the objects and refs of a bundle into this repository.

    Everything is checked before anything is stored, and nothing is ever moved back: refs are made, branches go forward,
    and a branch that went on here too has two tips afterwards. A tag that stands elsewhere here is kept, and the exit
    code is 3. Importing again adds nothing. When HEAD has no commit yet it goes to the bundle's branch.
    """
    progress = Progress(invocation, shown=invocation.interactive and not quiet)
    with opened_store(invocation, quiet=quiet) as store, _advised():
        try:
            report = import_bundle(
                store,
                _source(invocation, file),
                prefix=prefix,
                author=invocation.environment.author,
                progress=lambda done, whole: progress.tell(file, done, whole),
            )
        finally:
            progress.clear()
        finish(invocation, store)
    if as_json:
        write_record(invocation, _imported_record(file, report))
    elif not quiet:
        _show(invocation, file, report)
    kept = [each.name for each in report.refs if each.outcome == outcomes.KEPT]
    if kept:
        raise ConflictError(
            f"{counted(len(kept), 'ref')} of the bundle stand{'s' if len(kept) == 1 else ''}"
            f" elsewhere here, such as {kept[0]}; everything else was taken",
            refs=kept,
            hint="--as PREFIX puts all refs of the bundle beside those that are here",
        )


@contextmanager
def _advised() -> Iterator[None]:
    """Give advice that goes with bundles."""
    try:
        yield
    except AlreadyExistsError as error:
        error.data.setdefault("hint", "--force overwrites it")
        raise
    except ObjectNotFoundError as error:
        if "missing" in error.data:
            advice = "import the bundle that has it first, or have one made without --since"
            error.data.setdefault("hint", advice)
        raise


def _source(invocation: Invocation, file: str) -> Any:
    return invocation.stdin.read if file == STREAM else file


def _shown(file: str) -> str:
    return "standard input" if file == STREAM else safe(file)


def _store(invocation: Invocation) -> Store | None:
    """Return the repository of this folder, if there is one; one that is named has to be there."""
    try:
        found = find(invocation.folder, invocation.environment, explicit=invocation.directory)
    except RepositoryNotFoundError:
        if invocation.directory is not None:
            raise
        return None
    return Store.open(found)


def _contents(report: BundleReport) -> str:
    refs, objects = counted(len(report.refs), "ref"), counted(report.object_count, "object")
    return f"{refs}, {objects}, {size(report.size_bytes)}"


def _named(oids: Sequence[ObjectId]) -> str:
    more = f" and {len(oids) - 3} more" if len(oids) > 3 else ""
    return ", ".join(oid.short() for oid in oids[:3]) + more


def _refs(refs: Sequence[BundledRef]) -> dict[str, list[str]]:
    return {ref.name: [str(tip) for tip in ref.tips] for ref in refs}


def _record(file: str, report: BundleReport, secret_count: int | None = None) -> dict[str, Any]:
    return {
        "path": file,
        "refs": _refs(report.refs),
        "prerequisites": [str(oid) for oid in report.prerequisites],
        "objects": report.object_count,
        "packs": report.pack_count,
        "size_bytes": report.size_bytes,
        "head": report.head or None,
        "secrets": secret_count,
    }


def _imported_record(file: str, report: ImportedBundle) -> dict[str, Any]:
    return {
        "path": file,
        "refs": [
            {
                "name": each.name,
                "source": each.source,
                "outcome": each.outcome,
                "before": None if each.before is None else str(each.before),
                "tips": [str(tip) for tip in each.theirs],
            }
            for each in report.refs
        ],
        "objects": report.bundle.object_count,
        "packs": list(report.packs),
        "head": report.head or None,
    }


def _show(invocation: Invocation, file: str, report: ImportedBundle) -> None:
    for each in report.refs:
        saying, style = _SAYINGS[each.outcome]
        invocation.line(f"{_ref_shown(each)}: {paint(invocation, saying, style)}{_at(each)}")
    taken = counted(report.bundle.object_count, "object")
    here = "" if report.packs or not report.bundle.object_count else ", all of them here already"
    invocation.line(f"{_shown(file)}: {counted(len(report.refs), 'ref')}, {taken}{here}")
    if report.head:
        invocation.line(f"HEAD is on {safe(report.head.removeprefix('refs/heads/'))}")


def _ref_shown(each: RefOutcome) -> str:
    name = each.name
    for prefix in ("refs/heads/", "refs/"):
        if name.startswith(prefix):
            return safe(name[len(prefix) :])
    return safe(name)


def _at(each: RefOutcome) -> str:
    if each.outcome in (outcomes.UNCHANGED, outcomes.BEHIND):
        return ""
    return ", " + ", ".join(tip.short() for tip in each.theirs)


GROUP = Group(
    "Share branches, tags and sessions as one file.",
    {"create": create, "verify": verify, "list": list_, "import": import_},
)
