"""`trace secrets`: which kinds are known, what is found in a text, and what is taken for no secret."""

from __future__ import annotations

from trace_cli.arguments import ANY, OPTIONAL, Argument, Option, takes
from trace_cli.failures import EXIT_INVALID, EXIT_OK, usage_error
from trace_cli.porcelain.opening import JSON, opened_store
from trace_cli.porcelain.scanning import scan
from trace_cli.render.escape import one_line
from trace_cli.render.records import write_record
from trace_cli.render.tables import LEFT, table
from trace_cli.subcommands import Group
from trace_store import secrets
from trace_store.errors import InvalidInputError, NotFoundError, RepositoryNotFoundError
from trace_store.secrets.guard import position

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation

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
        known = secrets.Guard.of(store, invocation.environment).scanner.rules
    if as_json:
        for rule in known:
            write_record(invocation, {"rule": rule.name, "words": list(rule.words)})
        return
    rows = [(one_line(rule.name, 60), one_line(" ".join(rule.words), 200)) for rule in known]
    for line in table(invocation, ("rule", "words"), rows, LEFT * 2):
        invocation.line(line)


@takes(Argument("FILE", "file", "A text; - is standard input", OPTIONAL, default="-"), JSON)
def test(invocation: Invocation, *, file: str, as_json: bool) -> int:
    """Look through a text and print what is found: the rule, the place, and the id of the finding; never the value.

    Nothing is stored. When something is found the exit code is 7.
    """
    data = invocation.read(file)
    try:
        with opened_store(invocation) as store:
            found = secrets.Guard.of(store, invocation.environment).scanner.find_bytes(data)
    except RepositoryNotFoundError:
        # Without one no finding is allowed, and no key of it tells one id from another.
        found = secrets.Scanner().find_bytes(data)
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
        if not secrets.is_finding_id(each):
            raise InvalidInputError(f"not the id of a finding: {one_line(each, 40)}", value=each)
    environment = invocation.environment
    with opened_store(invocation) as store:
        disk, store_id = store.disk, store.config.store_id
        known = secrets.allowed(disk, environment, store_id)
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
            secrets.write_allowed(disk, environment, store_id, known)
    for each in known if listed else ids:
        if as_json:
            write_record(invocation, {"id": each, "allowed": not remove})
        else:
            invocation.line(each)


GROUP = Group(HELP, {"rules": rules, "test": test, "scan": scan, "allow": allow})
