"""`trace secrets`: find secrets; mark false positives."""

from __future__ import annotations

import os

from trace_cli.arguments import ANY, OPTIONAL, Argument, Option, takes
from trace_cli.failures import EXIT_INVALID, EXIT_OK, usage_error
from trace_cli.porcelain.common import JSON, opened
from trace_cli.porcelain.progress import Progress
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import LEFT, counted, size, table
from trace_cli.runtime import Invocation
from trace_cli.subcommands import Group
from trace_store import errors, secrets
from trace_store.base.oid import ObjectId
from trace_store.errors import NotFoundError, RepositoryNotFoundError
from trace_store.maintenance.object_scan import FileScan, StoredSecret
from trace_store.repo.repository import Repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results, ResultsAndCode

HELP = """Trace scans what is committed and imported, and stores placeholders in place of the secrets it finds. These
commands show the rules, test them on a text, scan the repository, and keep a list of false positives.
"""


@takes(JSON)
def rules(invocation: Invocation) -> Results:
    """List the rules and the keywords that trigger them.

    Your own rules are in `trace/secrets.toml` in your settings folder, and are listed first.
    """
    with opened(invocation) as repo:
        known = repo.guard.scanner.rules
    rows = [(one_line(rule.name, 60), one_line(" ".join(rule.words), 200)) for rule in known]
    yield (
        ({"rule": rule.name, "words": rule.words} for rule in known),
        table(invocation, ("rule", "words"), rows, LEFT * 2),
    )


@takes(Argument("FILE", "file", "A text; - reads standard input", OPTIONAL, default="-"), JSON)
def test(invocation: Invocation, *, file: str) -> ResultsAndCode:
    """Scan a text and print the rule, place and id of each finding, never the value.

    Nothing is stored. The exit code is 7 if a secret is found.
    """
    data = invocation.read(file)
    try:
        with opened(invocation) as repo:
            found = repo.guard.scanner.find_bytes(data)
    except RepositoryNotFoundError:
        # Without a repository there are no false positives and no key for ids.
        found = secrets.Scanner().find_bytes(data)
    for each in found:
        place = secrets.position(data, each.start)
        record = {"rule": each.rule, "id": each.id, "place": place}
        text = f"{each.id} {one_line(each.rule)} {place}"
        yield {**record, "start": each.start, "end": each.end}, text
    return EXIT_INVALID if found else EXIT_OK


@takes(
    Argument("ID...", "ids", "Ids of findings, as in placeholders", ANY),
    Option("--list", "listed", "List false positives"),
    Option("--remove", "remove", "Remove them from the list"),
    JSON,
)
def allow(invocation: Invocation, *, ids: list[str], listed: bool, remove: bool) -> Results:
    """Mark findings as false positives.

    The id is in the placeholder; `trace secrets test` prints it. The list is a file of your own for this repository,
    not part of the repository. Content that is already stored keeps its placeholders.
    """
    if listed == bool(ids) or (listed and remove):
        raise usage_error("give ids or --list", "for example: trace secrets allow --list")
    with opened(invocation) as repo:
        if ids:
            try:
                repo.maintenance.allow_secrets(*ids, remove=remove)
            except NotFoundError as error:
                hint = "`trace secrets allow --list` prints the list"
                raise NotFoundError(error.message, hint=hint) from error
        known = repo.maintenance.allowed_secrets() if listed else ids
    for each in known:
        yield {"id": each, "allowed": not remove}, each


@takes(
    Argument(
        "REVISION|PATH",
        "what",
        "A revision or a folder (default: everything stored)",
        OPTIONAL,
        completes="REVISION",
    ),
    JSON,
)
def scan(invocation: Invocation, *, what: str | None) -> ResultsAndCode:
    """Scan stored content for secrets: packs, loose objects, the journal and quarantine, reachable or not.

    Each finding is listed with its rule, id, object, messages and refs, never with its value. The exit code is 7 if a
    secret is found. `trace purge OID` deletes an object permanently, `trace secrets allow ID` marks a false positive. A
    name that is not a revision is taken as a path.
    """
    with opened(invocation) as repo, Progress(invocation) as progress:
        start = _start(repo, what)
        if what is not None and start is None:
            return (yield from _scan_files(invocation, repo.maintenance.scan_files(what)))
        result = repo.maintenance.scan_secrets(
            start, progress=lambda done: progress.tell("looking", done, done)
        )
    yield result.found, map(_line, result.found)
    for oid, why in result.unreadable.items():
        invocation.note(f"note: object {oid} could not be read: {one_line(why)}")
    if not invocation.as_json:
        scanned = f"{counted(result.objects, 'object')}, {size(result.bytes)}"
        if result.found:
            objects = len({each.oid for each in result.found})
            total = f"{counted(len(result.found), 'secret')} in {counted(objects, 'object')}"
            invocation.note(f"{total} of {scanned}; `trace purge OID` deletes one permanently")
        else:
            invocation.note(f"no secrets found in {scanned}")
    return EXIT_INVALID if result.found else EXIT_OK


def _start(repo: Repo, what: str | None) -> ObjectId | None:
    """Return the object to start from; None for all objects, or for a path."""
    if what is None:
        return None
    try:
        return repo.resolve(what)
    except (errors.NotFoundError, errors.InvalidInputError):
        if os.path.lexists(what):
            return None
        raise


def _scan_files(invocation: Invocation, scan: FileScan) -> ResultsAndCode:
    """Yield the secrets in files."""
    for error in scan.unreadable:
        invocation.note(f"note: {one_line(str(error))}")
    for each in scan.found:
        name = os.path.relpath(each.path)
        record = {"rule": each.rule, "id": each.id, "path": name, "line": each.line}
        yield record, f"{each.id} {one_line(each.rule)} {one_line(name)}:{each.line}"
    if not invocation.as_json:
        count = counted(len(scan.found), "secret")
        invocation.note(f"{count} in {counted(scan.files, 'file')}")
    return EXIT_INVALID if scan.found else EXIT_OK


def _line(found: StoredSecret) -> str:
    places = [str(address) for address in found.addresses[:3]]
    places = places or [oid.short() for oid in found.commits[:3]]
    more = len(found.addresses or found.commits) - len(places)
    listed = " ".join(places) + (f" (+{more})" if more > 0 else "")
    refs = ", ".join(
        safe(ref.removeprefix("refs/").removeprefix("heads/")) for ref in found.refs[:3]
    )
    if len(found.refs) > 3:
        refs += f" (+{len(found.refs) - 3})"
    where = f"{listed}: {refs or 'unreachable'}" if listed else "no commit names it"
    return f"{found.id} {one_line(found.rule)} {found.kind} {found.oid} {where}"


GROUP = Group(HELP, {"rules": rules, "test": test, "scan": scan, "allow": allow})
