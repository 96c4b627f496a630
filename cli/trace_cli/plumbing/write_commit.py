"""`trace write-commit`: create a commit from a JSON description.

Reads one JSON object from standard input or a file, and prints the id of the commit, 64 hex characters and a newline.
The input has the form that `trace cat-file -p COMMIT` prints:

    author    text (default: as `trace commit` says)
    time      milliseconds since 1970-01-01T00:00:00Z (default: now)
    parents   a list of commit ids (default: empty)
    ops       a list of [name, fields]; see `trace help operations`
    message, meta, links    optional

Other fields are refused.

An object id is its 64 hex characters. Text that happens to be 64 hex characters is written `{"$text": "…"}`, bytes that
are not an id `{"$bin": "hex"}`, and a map whose only key is `$text`, `$bin` or `$map` as `{"$map": {…}}`.

All linked objects must exist, and the operations must be known and apply to the context of the first parent. On an
error the exit code is 2, and nothing is written.

Without `--update` the commit is stored and no ref moves. With it, the commit and the move become durable together; the
ref must be at the first parent (or not exist, if there is no parent), else the exit code is 11 and nothing is written.
HEAD as the ref means its branch.
"""

from __future__ import annotations

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.plumbing.support import author_of, full_ref, open_store, seal_if_due
from trace_cli.render.structure import from_json
from trace_cli.runtime import Invocation
from trace_store import context, errors
from trace_store.base.ident import check_author
from trace_store.base.oid import ObjectId, hash_object
from trace_store.contracts import RefEdit, Transaction
from trace_store.objects.address import HERE
from trace_store.objects.codec import COMMIT, encode, links
from trace_store.objects.commit import Commit
from trace_store.objects.message import load_message, load_parts
from trace_store.objects.operations import ADDS_MESSAGES, EDIT, OPERATIONS, only_appends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_store.contracts.protocols import RefReader
    from trace_store.store.store import Store

FIELDS = frozenset(("author", "links", "message", "meta", "ops", "parents", "time"))


@takes(
    Option(
        "--update",
        "ref",
        "Move this ref (or HEAD's branch) from the first parent to the commit",
        "REF",
    ),
    Argument("FILE", "file", "The JSON file (default: standard input)", OPTIONAL),
)
def run(invocation: Invocation, *, ref: str | None, file: str | None) -> int:
    """Store the commit, move the ref if one is named, and print the id."""
    fields = _parse(invocation.read(file))
    with open_store(invocation) as store:
        if "author" not in fields:
            fields["author"] = author_of(invocation, store)
        fields.setdefault("time", store.clock.now())
        fields.setdefault("parents", [])
        fields.setdefault("ops", [])
        data = encode([COMMIT, fields])
        commit = _decode_and_check(store, data, fields)
        oid = store.objects.write(data) if ref is None else _update(store, ref, commit, data)
        seal_if_due(store)
    invocation.line(str(oid))
    return 0


def _parse(text: bytes) -> dict[str, Any]:
    import json

    try:
        value = json.loads(text.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise errors.UnreadableInputError(
            f"the input is not UTF-8 at byte {error.start}"
        ) from error
    except json.JSONDecodeError as error:
        raise errors.UnreadableInputError(
            f"the input is not JSON: {error.msg} at line {error.lineno} column {error.colno}",
            line=error.lineno,
            column=error.colno,
        ) from error
    except (ValueError, RecursionError) as error:  # ValueError: a number with too many digits
        what = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise errors.UnreadableInputError(f"the input cannot be read as JSON: {what}") from error
    if not isinstance(value, dict):
        raise errors.UnreadableInputError("the input is not a JSON object")
    fields = from_json(value)
    if not isinstance(fields, dict):
        raise errors.UnreadableInputError("the input is not a JSON object")
    return fields


def _decode_and_check(store: Store, data: bytes, fields: dict[str, Any]) -> Commit:
    unknown = sorted(set(fields) - FIELDS)
    if unknown:
        raise errors.InvalidInputError(
            f"a commit has no field {unknown[0][:80]!r}", field=unknown[0]
        )
    commit = _decode(data, fields)
    check_author(commit.author)
    for operation in commit.operations:
        if operation.name not in OPERATIONS:
            raise errors.InvalidOperationError(f"unknown operation {operation.name[:80]!r}")
    for oid in links(data):
        if not store.objects.contains(oid):
            raise errors.ObjectNotFoundError(
                f"the commit links to a missing object: {oid}", oid=oid
            )
    _check_messages(store, commit)
    if not only_appends(commit):
        _check_folds(store, commit)
    return commit


def _decode(data: bytes, fields: dict[str, Any]) -> Commit:
    try:
        return Commit.decode(data)
    except errors.CorruptObjectError as error:
        try:  # without the operations, to find out whether one of them is at fault
            Commit.decode(encode([COMMIT, {**fields, "ops": []}]))
        except errors.CorruptObjectError:
            raise errors.InvalidInputError(error.message) from error
        raise errors.InvalidOperationError(error.message) from error


def _check_messages(store: Store, commit: Commit) -> None:
    """Load every message and every edit, as compiling would."""
    for operation in commit.operations:
        try:
            if operation.name in ADDS_MESSAGES:
                for message in operation.fields["messages"]:
                    load_message(message, store.objects.read)
                    for parts in message.get("edits", ()):
                        load_parts(parts, store.objects.read)
            elif operation.name == EDIT:
                load_parts(operation.fields["parts"], store.objects.read)
        except errors.FormatError as error:
            raise errors.InvalidMessageError(f"{operation.name}: {error.message}") from error


def _check_folds(store: Store, commit: Commit) -> None:
    """Check that the operations apply to the context of the first parent."""
    state = context.fold.Fold()
    if commit.parents:
        state = context.snapshots.fold_of(store, commit.parents[0]).copy()
    try:
        state.apply(HERE, commit)
    except errors.FormatError as error:
        raise errors.InvalidOperationError(error.message) from error


def _update(store: Store, ref: str, commit: Commit, data: bytes) -> ObjectId:
    oid, name = hash_object(data), full_ref(store, ref)
    expected = commit.parents[0] if commit.parents else None
    subject = commit.message.partition("\n")[0]

    def build(refs: RefReader) -> Transaction:
        return Transaction(
            [(oid, data)], [RefEdit(name, oid, expected)], f"write-commit: {subject}"
        )

    store.transact(build, author=commit.author)
    return oid
