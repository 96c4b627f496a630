"""Writing commits: one transaction each, on top of the branch's current tip.

The targets of an operation are checked against the fold of the parent before anything is written. A commit that only
appends needs no fold, so its cost does not depend on the length of the history.
"""

from __future__ import annotations

from trace_store import context, errors
from trace_store import revision as revisions
from trace_store.context.calls import CALL, Calls, HistoryCalls, link_operations, link_version
from trace_store.contracts import RefEdit, Transaction
from trace_store.history.draft import CommitResult, Draft, as_messages
from trace_store.ident import check_author
from trace_store.objects import operations as ops
from trace_store.objects.address import HERE, RESULT, Address, read_address
from trace_store.objects.codec import ARRAY16_LIMIT, encode_ordered
from trace_store.objects.commit import Commit, Operation, read_commit
from trace_store.objects.content import ObjectCollector
from trace_store.objects.fast_encode import encode_commit, encode_message
from trace_store.objects.parts import ToolCall, ToolResult
from trace_store.oid import ObjectId, hash_object
from trace_store.ref_names import branch_ref
from trace_store.store.handle import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from trace_store.context.fold import Fold
    from trace_store.contracts import RefReader
    from trace_store.history.draft import Reword
    from trace_store.objects.content import Salt
    from trace_store.objects.message import Message
    from trace_store.providers.documents import Given
    from trace_store.secrets.guard import Guard

MAXIMUM_ATTEMPTS = 100
_MAXIMUM_PENDING = 64
"""How many calls without a result are remembered; for others the history is searched."""
_ON_UNITS = (ops.REMOVE, ops.RESTORE, ops.REPLACE, ops.MOVE)


def new_draft(
    store: Store,
    reword: Reword | None = None,
    salt: Salt | None = None,
    guard: Guard | None = None,
) -> Draft:
    """Return an empty draft whose targets are resolved in this store.

    Args:
        store: where the commit will be written.
        reword: returns the parts of a message with a new text.
        salt: makes all content private, as in `content.write_content`.
        guard: redacts secrets; None checks nothing.
    """
    gathering = None if guard is None else guard.gathering()
    return Draft(lambda text: revisions.resolve_address(store, text), reword, salt, gathering)


def write(
    store: Store,
    draft: Draft,
    *,
    author: str,
    message: str = "",
    branch: str | None = None,
    meta: Mapping[str, Any] | None = None,
    links: Sequence[tuple[str, ObjectId | str]] = (),
    onto: ObjectId | None = None,
    along: Callable[[RefReader], Sequence[RefEdit]] | None = None,
) -> CommitResult:
    """Write a draft as one commit at the end of a branch.

    Args:
        store: where to.
        draft: the operations.
        author: the author of the commit.
        message: the commit message.
        branch: name of a branch, which is created if missing; None is HEAD.
        meta: metadata, as in `Commit`.
        links: as in `Commit`.
        onto: the required tip of the branch; a new branch starts there. None accepts any tip.
        along: returns edits of other refs for the same transaction; with a detached HEAD, they follow in their own.

    Raises:
        InvalidOperationError: the draft is empty, an operation cannot be applied, or an edit that was not forced
            removes a result or a call with a result; `.calls` holds the ids.
        MessageNotFoundError: an operation names a message that is not in the context, or a source that does not exist.
        ObjectNotFoundError: the commit of a source or of usage is missing.
        InvalidInputError: the author or the branch name is not valid.
        RefChangedError: the tip of the branch is not `onto`.
        SecretFoundError: the message holds a secret, and the guard refuses secrets.
        StorageError: the disk failed; nothing was written.
    """
    if not draft.operations:
        raise errors.InvalidOperationError("nothing to commit")
    check_author(author)
    _check_origins(store, draft)
    message = draft.gathering.text(message)
    if facts := draft.gathering.facts:
        meta = {**(meta or {}), **facts}
    ref = store.refs.head_target() if branch is None else branch_ref(branch)
    writer = _Writer(store, draft, author, message, meta, links, onto)
    said = _reflog_message(message)
    if isinstance(ref, ObjectId):
        made = _write_detached(store, writer, author)
        if along is not None:
            store.transact(lambda refs: Transaction((), along(refs), said), author=author)
        return made
    if writer.needs_history:  # slow, so done before the lock is taken
        writer.prepare(onto or store.refs.read(ref))
    if along is None:
        store.advance(ref, lambda tip: writer.make(tip, ref), author=author, message=said)
        return writer.written()

    def build(refs: RefReader) -> Transaction:
        tip = refs.read(ref)
        oid, objects = writer.make(tip, ref)
        return Transaction(objects, [RefEdit(ref, oid, tip), *along(refs)], said)

    store.transact(build, author=author)
    return writer.written()


def _write_detached(store: Store, writer: _Writer, author: str) -> CommitResult:
    """Write a commit on a detached HEAD, a file that is compared and set under the journal's lock."""
    for _ in range(MAXIMUM_ATTEMPTS):
        at = store.refs.head()
        if at.ref is not None:
            raise errors.RefChangedError(
                "HEAD was attached to a branch meanwhile", ref="HEAD", actual=at.ref
            )
        _, objects = writer.make(at.oid, None)
        store.transact(lambda _, made=objects: Transaction(made))  # type: ignore[misc]
        made = writer.written()

        def move(_: RefReader, old: ObjectId | None = at.oid, new: ObjectId = made.oid) -> None:
            if store.refs.head().oid != old:
                raise errors.RefChangedError("HEAD moved meanwhile", ref="HEAD", expected=old)
            store.refs.set_head(new, message="commit", author=author)

        try:
            store.transact(move)
        except errors.RefChangedError:
            continue  # lost the race: retry on top of the other commit
        return made
    raise errors.RefChangedError("HEAD keeps moving", ref="HEAD")


class batch:  # noqa: N801 - it is called like a function
    """Collect operations into one commit, written at the end of the block unless it raises.

    `draft.savepoint()` undoes part of the block. Afterwards `draft.result` is the commit; an empty batch writes nothing
    and has none. `written` is called with the result.

    Raises:
        As `write`.
    """

    __slots__ = ("_arguments", "_branch", "_draft", "_on_written", "_store")

    def __init__(
        self,
        store: Store,
        *,
        author: str,
        message: str = "",
        reword: Reword | None = None,
        salt: Salt | None = None,
        guard: Guard | None = None,
        written: Callable[[CommitResult], object] | None = None,
    ) -> None:
        self._store = store
        self._draft = new_draft(store, reword, salt, guard)
        self._arguments = author, message
        self._branch: str | None = None
        self._on_written = written

    def __enter__(self) -> Draft:
        # The branch at the start of the block, even if HEAD moves before its end.
        ref = self._store.refs.head_target()
        self._branch = None if isinstance(ref, ObjectId) else ref
        return self._draft

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        draft = self._draft
        if kind is None and draft.operations:
            author, message = self._arguments
            draft.result = write(
                self._store, draft, author=author, message=message, branch=self._branch
            )
            if self._on_written is not None:
                self._on_written(draft.result)


def commit(
    store: Store,
    messages: Sequence[Given],
    *,
    author: str,
    message: str = "",
    branch: str | None = None,
    salt: Salt | None = None,
    guard: Guard | None = None,
) -> CommitResult:
    """Append messages as one commit; raises as `write`, and InvalidMessageError for a bad message.

    `salt` makes the content private, as in `content.write_content`. `guard` redacts secrets; without one nothing is
    checked.

    Agents do this at every turn, so the commit is encoded directly. Messages that have no direct encoding go through a
    draft, which writes the same bytes.
    """
    ref = store.refs.head_target() if branch is None else branch_ref(branch)
    given = as_messages(messages)
    writer = _Appender(store, given, ref, author, message, salt, guard)
    if isinstance(ref, ObjectId) or not writer.encode():
        draft = new_draft(store, salt=salt, guard=guard)
        draft.extend(given)
        return write(store, draft, author=author, message=message, branch=branch)
    check_author(author)
    reason = _reflog_message(writer.message) if message else "commit"
    store.advance(ref, writer.make, author, reason, None if branch else ref)
    return writer.written()


class _Appender:
    """Encodes a commit that appends messages to a branch.

    Attributes:
        message: the commit message, as stored.
    """

    __slots__ = (
        *("_author", "_calls", "_gathering", "_given", "_guard", "_pending", "_pieces", "_ref"),
        *("_result", "_results", "_salt", "_said", "_store", "_tip", "message"),
    )

    def __init__(
        self,
        store: Store,
        given: Sequence[Message],
        ref: str | ObjectId,
        author: str,
        message: str,
        salt: Salt | None,
        guard: Guard | None,
    ) -> None:
        self._store = store
        self._given = given
        self._ref = ref
        self._author = author
        self._said = self.message = message
        self._salt = salt
        self._guard = guard
        self._calls: list[tuple[str, int]] = []
        self._results: list[str] = []
        for number, each in enumerate(given):
            for part in each.parts:
                if isinstance(part, ToolCall):
                    self._calls.append((part.id, number))
                elif isinstance(part, ToolResult):
                    self._results.append(part.call_id)
        self._tip, self._pending = store.pending_calls
        self._result: CommitResult | None = None

    def encode(self) -> bool:
        """Encode the messages before the lock is taken; return False if none can be encoded directly."""
        if isinstance(self._ref, str) and not self._pending.keys() >= set(self._results):
            # Searching the history for calls may be slow. `make` repeats it if the branch has moved.
            self._set_tip(self._store.refs.read(self._ref))
        return self._encode()

    def _set_tip(self, tip: ObjectId | None) -> None:
        """Look for calls in the history of another tip."""
        if tip != self._tip:
            self._tip, self._pending = tip, {}

    def _encode(self) -> bool:
        guard, salt, given = self._guard, self._salt, self._given
        gathering = self._gathering = ObjectCollector() if guard is None else guard.gathering()
        put = gathering.put if salt is None else gathering.content_writer(salt)
        if self._results:
            read = self._store.objects.read
            earlier = HistoryCalls(self._tip, lambda oid: read_commit(oid, read), self._pending)
            given = Calls(earlier, self._pending).link(given)
        pieces: list[bytes] = []
        self._pieces = pieces
        for each in given:
            piece = encode_message(
                each.role, each.parts, put, each.kind, each.name, each.model, each.id
            )
            if piece is None:
                return False
            pieces.append(piece)
        if self._said:
            self.message = gathering.text(self._said)
        return 0 < len(pieces) < ARRAY16_LIMIT

    def make(self, tip: ObjectId | None) -> tuple[ObjectId, list[tuple[ObjectId, bytes]]]:
        """Return the id of the commit on top of a tip, and all objects to write."""
        if tip != self._tip:
            self._set_tip(tip)
            if self._results:
                self._encode()
        gathering, pieces, time = self._gathering, self._pieces, self._store.clock.now()
        found = gathering.secrets
        meta = encode_ordered(dict(gathering.facts)) if found and gathering.facts else b""
        data = encode_commit(tip, self._author, time, pieces, meta=meta, message=self.message)
        if data is None:
            raise errors.InvalidInputError(
                "the author is not plain text, or the clock returned no integer"
            )
        oid = hash_object(data)
        parents = () if tip is None else (tip,)
        ref = self._ref if isinstance(self._ref, str) else None
        self._result = CommitResult(oid, ref, len(pieces), parents, found, is_redacted=bool(meta))
        return oid, [*gathering.objects, (oid, data)]

    def written(self) -> CommitResult:
        """Return the result, and remember its calls for the next append."""
        result = self._result
        assert result is not None
        pending = dict(self._pending)
        for id in self._results:
            pending.pop(id, None)
        for id, number in self._calls:
            pending[id] = Address.of(result.oid, number)
        if (self._calls and self._results) or len(pending) > _MAXIMUM_PENDING:
            pending = {}  # the commit may answer its own calls
        self._store.pending_calls = result.oid, pending
        return result


class _Writer:
    """Builds the commit of a draft on the branch's current tip."""

    def __init__(
        self,
        store: Store,
        draft: Draft,
        author: str,
        message: str,
        meta: Mapping[str, Any] | None,
        links: Sequence[tuple[str, ObjectId | str]],
        onto: ObjectId | None,
    ) -> None:
        self._store = store
        self._draft = draft
        self._author = author
        self._message = message
        self._meta = meta
        self._links = links
        self._onto = onto
        self._checked: ObjectId | bool | None = False
        self._result: CommitResult | None = None
        self._changed_along: tuple[Address, ...] = ()
        self._linked_operations: tuple[ObjectId | None, list[Operation]] | None = None
        self._only_appends = all(map(ops.is_append, draft.operations))
        self._has_results = any(map(_has_results, draft.operations))

    @property
    def needs_history(self) -> bool:
        """Whether the operations refer to earlier messages of the branch."""
        return self._has_results or not self._only_appends

    def written(self) -> CommitResult:
        """Return the result of the transaction."""
        if self._result is None:
            raise errors.InvalidOperationError("nothing to commit")
        return self._result

    def make(
        self, tip: ObjectId | None, ref: str | None
    ) -> tuple[ObjectId, list[tuple[ObjectId, bytes]]]:
        """Return the id of the commit on top of a tip, and all objects to write."""
        base = tip
        if self._onto is not None:
            base = self._onto
            if tip is not None and tip != base:
                raise errors.RefChangedError(
                    f"{ref or 'HEAD'} moved meanwhile", ref=ref, expected=base, actual=tip
                )
        self.prepare(base)
        made = self._commit(base)
        data = made.encode()
        oid = hash_object(data)
        found = self._draft.gathering.secrets
        count = self._draft.message_count
        is_redacted = bool(self._draft.gathering.facts)
        self._result = CommitResult(
            *(oid, ref, count, made.parents, found, self._changed_along), is_redacted=is_redacted
        )
        return oid, [*self._draft.objects, (oid, data)]

    def prepare(self, tip: ObjectId | None) -> None:
        """Link results to calls and check targets against the fold of a tip, once for each tip."""
        if not self.needs_history or (self._checked is not False and self._checked == tip):
            return
        self._operations(tip)
        if not self._only_appends:
            self._check(tip)
        self._checked = tip

    def _check(self, tip: ObjectId | None) -> None:
        made = self._commit(tip)
        state = (
            context.fold.Fold()
            if tip is None
            else context.snapshots.fold_of(self._store, tip).copy()
        )
        for operation in made.operations:
            if operation.name == ops.EDIT:
                self._check_guarded_edit(state, operation)
        named = {each: None for o in made.operations for each in ops.targets_of(o, HERE)}
        try:
            units = state.units(a for a in named if a in state)
            along = units if any(map(_acts_on_units, made.operations)) else []
            state.apply(HERE, made)
        except errors.InvalidOperationError as error:
            # Report the missing message itself.
            if isinstance(error.__cause__, errors.MessageNotFoundError):
                raise error.__cause__ from None
            raise
        self._changed_along = tuple(dict.fromkeys(each for each in along if each not in named))

    def _check_guarded_edit(self, state: Fold, edit: Operation) -> None:
        """Raise if a guarded edit separates a call from its result, or adds a result without a call."""
        (address,) = ops.targets_of(edit, HERE)
        if address not in self._draft.guarded or address not in state:
            return
        answered = {
            (CALL, part["id"])
            for other in state.unit(address)
            for part in state.entry(other).parts
            if part["type"] == RESULT and "call" in part and Address(*part["call"]) == address
        }
        old, new = (
            {(part["type"], part.get("id")): "call" in part for part in parts}
            for parts in (state.entry(address).parts, edit.fields["parts"])
        )
        for (kind, call), is_linked in {**new, **old}.items():
            if (kind, call) not in new and (kind == RESULT or (kind, call) in answered):
                what = "the result of a call" if kind == RESULT else "a call that has a result"
                fault = f"removes {what}"
            elif (kind, call) not in old and kind == RESULT and not is_linked:
                fault = "adds a result without a call"
            else:
                continue
            raise errors.InvalidOperationError(
                f"the edit of {address} {fault}: {call}", calls=[call]
            )

    def _operations(self, tip: ObjectId | None) -> list[Operation]:
        """Return the operations, with results linked to their calls in the history of a tip."""
        drafted = self._draft.operations
        if not self._has_results:
            return drafted
        if self._linked_operations is None or self._linked_operations[0] != tip:
            earlier = HistoryCalls(tip, lambda oid: read_commit(oid, self._store.objects.read))
            made = link_operations(drafted, Calls(earlier))
            self._linked_operations = tip, [self._link_edit(each, tip, earlier) for each in made]
        return self._linked_operations[1]

    def _link_edit(
        self, operation: Operation, tip: ObjectId | None, earlier: HistoryCalls
    ) -> Operation:
        """Return an edit with its results linked as in the message that it edits."""
        if operation.name != ops.EDIT:
            return operation
        target = read_address(operation.fields["target"], HERE)
        state = context.fold.Fold() if tip is None else context.snapshots.fold_of(self._store, tip)
        before = [v.parts for v in state.entry(target).versions] if target in state else []
        parts = link_version(operation.fields["parts"], before, Calls(earlier).answer)
        return Operation(ops.EDIT, {**operation.fields, "parts": parts})

    def _commit(self, tip: ObjectId | None) -> Commit:
        return Commit(
            [] if tip is None else [tip],
            self._author,
            self._store.clock.now(),
            self._operations(tip),
            self._message,
            self._meta,
            self._links,
        )


def _acts_on_units(operation: Operation) -> bool:
    return operation.name in _ON_UNITS or "priority" in operation.fields


def _has_results(operation: Operation) -> bool:
    versions = [each["parts"] for each in operation.fields.get("messages", ())]
    versions.append(operation.fields.get("parts", ()))
    return any(part["type"] == RESULT for parts in versions for part in parts)


def _check_origins(store: Store, draft: Draft) -> None:
    """Raise as `write` if a source is missing; it need not be in the context.

    A source that is also replaced is checked as the target that it is.
    """
    sources: dict[Address, None] = {}
    for operation in draft.operations:
        named = set(ops.targets_of(operation, HERE)) if "sources" in operation.fields else ()
        found = (Address(*each) for each in operation.fields.get("sources", ()))
        sources.update(dict.fromkeys(each for each in found if each.birth and each not in named))
        about = operation.fields.get("about")
        if about is not None:
            read_commit(ObjectId(about), store.objects.read)
    revisions.require_messages(store, sources)


def _reflog_message(message: str) -> str:
    """Return the reflog entry for a commit message."""
    return f"commit: {message.splitlines()[0]}" if message else "commit"


__all__ = [
    "Address",
    "CommitResult",
    "batch",
    "commit",
    "new_draft",
    "write",
]
