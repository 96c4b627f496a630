"""`trace secrets`: find secrets; mark false positives."""

from __future__ import annotations

import os

from trace_cli.arguments import ANY, OPTIONAL, Argument, Option, takes
from trace_cli.failures import EXIT_INVALID, EXIT_OK, usage_error
from trace_cli.porcelain.common import JSON, opened_store
from trace_cli.porcelain.progress import Progress
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import address_text, write_record
from trace_cli.render.tables import LEFT, counted, size, table
from trace_cli.subcommands import Group
from trace_store import errors, secrets
from trace_store.errors import InvalidInputError, NotFoundError, RepositoryNotFoundError
from trace_store.files import read_file
from trace_store.maintenance.secret_scan import scan_stored
from trace_store.maintenance.verify_purged import files_below
from trace_store.revision import resolve
from trace_store.secrets.guard import position

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_cli.runtime import Invocation
    from trace_store.maintenance.secret_scan import StoredSecret
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store


HELP = """Find secrets, and say what is none.

What is committed and imported is looked through, and placeholders stand for the secrets that are found. These commands
show what is looked for, try it on a text, and keep a list of findings that are no secrets.
"""


@takes(JSON)
def rules(invocation: Invocation, *, as_json: bool) -> None:
    """List the kinds of secrets that are known, and the words of which a text has to hold one.

    Rules of your own stand in `trace/secrets.toml` in the folder for settings, and are listed first.
    """
    with opened_store(invocation) as store:
        known = secrets.guard.Guard.of(store, invocation.environment).scanner.rules
    if as_json:
        for rule in known:
            write_record(invocation, {"rule": rule.name, "words": list(rule.words)})
        return
    rows = [(one_line(rule.name, 60), one_line(" ".join(rule.words), 200)) for rule in known]
    for line in table(invocation, ("rule", "words"), rows, LEFT * 2):
        invocation.line(line)


@takes(Argument("FILE", "file", "A text; - is standard input", OPTIONAL, default="-"), JSON)
def test(invocation: Invocation, *, file: str, as_json: bool) -> int:
    """Scan through a text and print what is found: the rule, the place, and the id of the finding; never the value.

    Nothing is stored. When something is found the exit code is 7.
    """
    data = invocation.read(file)
    try:
        with opened_store(invocation) as store:
            found = secrets.guard.Guard.of(store, invocation.environment).scanner.find_bytes(data)
    except RepositoryNotFoundError:
        # Without one no finding is allowed, and no key of it tells one id from another.
        found = secrets.engine.Scanner().find_bytes(data)
    for each in found:
        place = position(data, each.start)
        if as_json:
            record = {"rule": each.rule, "id": each.id, "place": place}
            write_record(invocation, {**record, "start": each.start, "end": each.end})
        else:
            invocation.line(f"{each.id} {one_line(each.rule)} {place}")
    return EXIT_INVALID if found else EXIT_OK


@takes(
    Argument("ID...", "ids", "Of findings, as placeholders have them", ANY),
    Option("--list", "listed", "Print what is allowed"),
    Option("--remove", "remove", "Allow them no longer"),
    JSON,
)
def allow(
    invocation: Invocation, *, ids: list[str], listed: bool, remove: bool, as_json: bool
) -> None:
    """Take findings for no secrets from now on.

    The id stands in the placeholder, and `trace secrets test` prints it. It is kept for this repository in a file of
    your own, and in no repository: what was stored before keeps its placeholders.
    """
    if listed == bool(ids) or (listed and remove):
        raise usage_error("give ids, or --list", "for example: trace secrets allow --list")
    for each in ids:
        if not secrets.user_files.is_finding_id(each):
            raise InvalidInputError(f"not the id of a finding: {one_line(each, 40)}", value=each)
    environment = invocation.environment
    with opened_store(invocation) as store:
        disk, store_id = store.disk, store.config.store_id
        known = secrets.user_files.allowed(disk, environment, store_id)
        if remove:
            missing = [each for each in ids if each not in known]
            if missing:
                raise NotFoundError(
                    f"{missing[0]} is not allowed", hint="`trace secrets allow --list` says what is"
                )
            known = [each for each in known if each not in ids]
        elif ids:
            known = list(dict.fromkeys([*known, *ids]))
        if ids:
            secrets.user_files.write_allowed(disk, environment, store_id, known)
    for each in known if listed else ids:
        if as_json:
            write_record(invocation, {"id": each, "allowed": not remove})
        else:
            invocation.line(each)


LONGEST_FILE_BYTES = 64 << 20


@takes(
    Argument(
        "REVISION|PATH",
        "what",
        "Scan at what this revision leads to, or at the files of a folder; at all that is stored if not given",
        OPTIONAL,
        completes="REVISION",
    ),
    JSON,
)
def scan(invocation: Invocation, *, what: str | None, as_json: bool) -> int:
    """Search what is stored for secrets: packed or not, in the journal, in quarantine, reachable or not.

    Each is told by its rule, the id of the finding, the object, the messages that say it and the refs that lead there;
    never by its value. The exit code is 7 when something is found. `trace purge OID` removes an object for good,
    `trace secrets allow ID` says that a finding is none. A path is looked for when there is no such revision.
    """
    progress = Progress(invocation, shown=invocation.interactive and not as_json)
    with opened_store(invocation) as store:
        find = secrets.guard.Guard.of(store, invocation.environment).scanner.find_bytes
        start = _start(store, what)
        if what is not None and start is None:
            return _scan_files(invocation, store, os.path.abspath(what), find, as_json=as_json)
        found = scan_stored(
            store, find, start, progress=lambda done: progress.tell("looking", done, done)
        )
        progress.clear()
    for each in found.found:
        if as_json:
            write_record(invocation, _record(each))
        else:
            invocation.line(_line(each))
    for oid, why in found.unreadable.items():
        invocation.note(f"note: object {oid} could not be looked into: {one_line(why)}")
    if not as_json:
        whole = f"{counted(found.objects, 'object')}, {size(found.bytes)}"
        objects = len({each.oid for each in found.found})
        if found.found:
            what_ = f"{counted(len(found.found), 'secret')} in {counted(objects, 'object')}"
            invocation.note(f"{what_} of {whole}; `trace purge OID` removes one for good")
        else:
            invocation.note(f"no secret is found in {whole}")
    return EXIT_INVALID if found.found else EXIT_OK


def _start(store: Store, what: str | None) -> ObjectId | None:
    """Return the object to begin with; None for all objects, and for a path."""
    if what is None:
        return None
    try:
        return resolve(store, what)
    except (errors.NotFoundError, errors.InvalidInputError):
        if os.path.lexists(what):
            return None
        raise


def _scan_files(
    invocation: Invocation, store: Store, path: str, find: Any, *, as_json: bool
) -> int:
    """Scan through a file, or all below a folder; links are not followed."""
    paths = files_below(store.disk, path) if os.path.isdir(path) else iter((path,))
    count = total = 0
    for each in paths:
        try:
            data = read_file(store.disk, each, limit=LONGEST_FILE_BYTES) or b""
        except errors.StorageError as error:
            invocation.note(f"note: {one_line(str(error))}")
            continue
        count += 1
        name = os.path.relpath(each)
        for secret in find(data):
            total += 1
            line = data.count(b"\n", 0, secret.start) + 1
            if as_json:
                record = {"rule": secret.rule, "id": secret.id, "path": name, "line": line}
                write_record(invocation, record)
            else:
                invocation.line(f"{secret.id} {one_line(secret.rule)} {one_line(name)}:{line}")
    if not as_json:
        invocation.note(f"{counted(total, 'secret')} in {counted(count, 'file')}")
    return EXIT_INVALID if total else EXIT_OK


def _line(found: StoredSecret) -> str:
    places = [str(address) for address in found.addresses[:3]]
    places = places or [oid.short() for oid in found.commits[:3]]
    more = len(found.addresses or found.commits) - len(places)
    said = " ".join(places) + (f" (+{more})" if more > 0 else "")
    refs = ", ".join(
        safe(ref.removeprefix("refs/").removeprefix("heads/")) for ref in found.refs[:3]
    )
    if len(found.refs) > 3:
        refs += f" (+{len(found.refs) - 3})"
    where = f"{said}: {refs or 'no ref leads to it'}" if said else "no commit names it"
    return f"{found.id} {one_line(found.rule)} {found.kind} {found.oid} {where}"


def _record(found: StoredSecret) -> dict[str, Any]:
    return {
        "rule": found.rule,
        "id": found.id,
        "object": str(found.oid),
        "kind": found.kind,
        "addresses": [address_text(address) for address in found.addresses],
        "commits": list(map(str, found.commits)),
        "refs": list(found.refs),
    }


GROUP = Group(HELP, {"rules": rules, "test": test, "scan": scan, "allow": allow})
