"""Writing commits: one transaction each, on top of the branch's current tip.

The targets of an operation are checked against the fold of the parent before anything is written. A commit that only
appends needs no fold, so its cost does not depend on the length of the history.
"""

from __future__ import annotations

from trace_store import context, errors
from trace_store.base.ident import check_author
from trace_store.base.oid import ObjectId, hash_object
from trace_store.context.calls import CALL, Calls, HistoryCalls, link_operations, link_version
from trace_store.contracts import RefEdit
from trace_store.history.draft import CommitResult, Draft, as_messages
from trace_store.objects import operations as ops
from trace_store.objects.address import HERE, RESULT, Address, read_address
from trace_store.objects.codec import ARRAY16_LIMIT, encode_ordered
from trace_store.objects.commit import Commit, Operation, read_commit
from trace_store.objects.fast_encode import encode_commit, encode_message
from trace_store.objects.message import names_of, renamed
from trace_store.objects.parts import Text, ToolCall, ToolResult
from trace_store.store import revision as revisions
from trace_store.store.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from trace_store.context.fold import Fold
    from trace_store.contracts.protocols import RefReader
    from trace_store.objects.content import ObjectCollector
    from trace_store.objects.message import Message
    from trace_store.providers.documents import Given
    from trace_store.writer import Change, Edits, Writer

MAXIMUM_ATTEMPTS = 100
_MAXIMUM_PENDING = 64
"""How many calls without a result are remembered; for others the history is searched."""
_NONE_PENDING: tuple[ObjectId | None, Mapping[str, Address]] = (None, {})
_ON_UNITS = (ops.REMOVE, ops.RESTORE, ops.REPLACE, ops.MOVE)


def write(
    draft: Draft,
    *,
    message: str = "",
    meta: Mapping[str, Any] | None = None,
    links: Sequence[tuple[str, ObjectId | str]] = (),
    onto: ObjectId | None = None,
    along: Edits | None = None,
    reason: str = "",
    rewinds: bool = False,
) -> CommitResult:
    """Write a draft as one commit at the end of its branch, which is created if missing.

    If the context would stay as it is, nothing is written, and the result says so; a commit that records usage,
    metadata or links, or moves other refs along, is always written.

    Args:
        draft: the operations.
        message: the commit message.
        meta: metadata, as in `Commit`.
        links: as in `Commit`.
        onto: the required tip of the branch; a new branch starts there. None accepts any tip.
        along: returns edits of other refs for the same transaction; with a detached HEAD, they precede the commit.
        reason: what the reflog says; "" names the commit.
        rewinds: whether the commit follows `onto` wherever the branch is, which moves to it; with None it has no
            parent.

    Raises:
        InvalidOperationError: the draft is empty, an operation cannot be applied, or an edit that was not forced
            removes a result or a call with a result; `.calls` holds the ids.
        MessageNotFoundError: an operation names a message that is not in the context, or a source that does not exist.
        ObjectNotFoundError: the commit of a source or of usage is missing.
        InvalidInputError: the author is not valid.
        RefChangedError: the tip of the branch is not `onto`.
        SecretFoundError: the message holds a secret, and the repository refuses secrets.
        StorageError: the disk failed; nothing was written.
    """
    if not draft.operations:
        raise errors.InvalidOperationError("nothing to commit")
    change = draft.change
    store = change.writer.store
    check_author(change.author)
    _check_origins(draft)
    message = change.text(message)
    if facts := change.gathering.facts:
        meta = {**(meta or {}), **facts}
    ref = store.refs.head_target()
    builder = _CommitBuilder(
        *(draft, message, meta, links, onto), is_alone=along is None, rewinds=rewinds
    )
    reason = reason or _reflog_message(message)
    try:
        if isinstance(ref, ObjectId):
            _write_detached(builder, change, reason, along)
        else:
            _write_on_branch(builder, change, ref, reason, along)
    except _NothingToDoError:
        return builder.unchanged(ref if isinstance(ref, str) else None)
    return builder.written()


class _NothingToDoError(Exception):
    """The context would stay as it is."""


def _write_on_branch(
    builder: _CommitBuilder, change: Change, ref: str, reason: str, along: Edits | None
) -> None:
    if builder.needs_history:  # slow, so done before the lock is taken
        tip = change.writer.store.refs.read(ref)
        builder.prepare(builder.onto if builder.rewinds else builder.onto or tip)

    if along is None and not builder.rewinds:
        change.advance(ref, lambda tip: builder.commit(tip, ref), reason, builder.written)
        return

    def edits(refs: RefReader) -> Sequence[RefEdit]:
        tip = refs.read(ref)
        others = along(refs) if along is not None else ()
        return [RefEdit(ref, builder.commit(tip, ref), tip), *(others or ())]

    change.write(edits, reason, result=builder.written)


def _write_detached(
    builder: _CommitBuilder, change: Change, reason: str, along: Edits | None
) -> None:
    """Write a commit on a detached HEAD, a file that is compared and set under the journal's lock."""
    mark = change.gathering.mark()
    for _ in range(MAXIMUM_ATTEMPTS):
        change.gathering.roll_back(mark)
        at = change.writer.store.refs.head()
        if at.ref is not None:
            raise errors.RefChangedError(
                "HEAD was attached to a branch meanwhile", ref="HEAD", actual=at.ref
            )
        oid = builder.commit(at.oid, None)
        try:
            change.move_head(at, oid, reason, along, result=builder.written)
        except errors.RefChangedError:
            continue  # lost the race: retry on top of the other commit
        return
    raise errors.RefChangedError("HEAD keeps moving", ref="HEAD")


class batch:  # noqa: N801 - it is called like a function
    """Collect operations into one commit, written at the end of the block unless it raises.

    `draft.savepoint()` undoes part of the block. Afterwards `draft.result` is the commit; an empty batch writes nothing
    and has none.

    Raises:
        As `write`.
    """

    __slots__ = ("_draft", "_message", "_private", "_writer")

    def __init__(self, writer: Writer, *, message: str = "", private: bool = False) -> None:
        self._writer = writer
        self._message = message
        self._private = private

    def __enter__(self) -> Draft:
        # The branch at the start of the block, even if HEAD moves before its end.
        ref = self._writer.store.refs.head_target()
        writer = self._writer if isinstance(ref, ObjectId) else self._writer.on(ref)
        self._draft = Draft(writer, private=self._private)
        return self._draft

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        draft = self._draft
        if kind is None and draft.operations:
            draft.result = write(draft, message=self._message)


def commit(
    writer: Writer,
    messages: Sequence[Given],
    *,
    message: str = "",
    private: bool = False,
    head: str | ObjectId | None = None,
) -> CommitResult:
    """Append messages as one commit; raises as `write`, and InvalidMessageError for a bad message.

    With `private` the content is hashed with the user's key, as in `Draft`. `head` is HEAD's target, if the caller has
    just read it.

    Agents do this at every turn, so the commit is encoded directly. Messages that have no direct encoding go through a
    draft, which writes the same bytes.
    """
    store = writer.store
    ref = store.refs.head_target() if head is None else head
    given = as_messages(messages)
    appender = _Appender(writer, given, ref, message, private)
    if isinstance(ref, ObjectId) or not appender.encode():
        draft = Draft(writer, private=private)
        draft.extend(given)
        return write(draft, message=message)
    reason = _reflog_message(appender.message) if message else "commit"
    store.advance(ref, appender.make, check_author(appender.author), reason, ref)
    result = appender.written()
    writer.committed(result)
    return result


class _Appender:
    """Encodes a commit that appends messages to a branch.

    Attributes:
        author: the author of the commit.
        message: the commit message, as stored.
    """

    __slots__ = (
        *("_calls", "_gathering", "_given", "_message", "_pending", "_pieces", "_private"),
        *("_ref", "_result", "_results", "_store", "_tip", "_writer", "author", "message"),
    )

    def __init__(
        self,
        writer: Writer,
        given: Sequence[Message],
        ref: str | ObjectId,
        message: str,
        private: bool,
    ) -> None:
        self._writer = writer
        self._store = writer.store
        self._given = given
        self._ref = ref
        self.author = writer.author
        self._message = self.message = message
        self._private = private
        self._calls: list[tuple[str, int]] = []
        self._results: list[str] = []
        for number, each in enumerate(given):
            for part in each.parts:
                if isinstance(part, ToolCall):
                    self._calls.append((part.id, number))
                elif isinstance(part, ToolResult):
                    self._results.append(part.call_id)
        self._tip, self._pending = self._store.pending_calls.get(ref, _NONE_PENDING)
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
        writer, given = self._writer, self._given
        gathering = self._gathering = writer.guard.gathering()
        put = gathering.content_writer(writer.salt()) if self._private else gathering.put
        if self._results:
            earlier = _calls_before(self._store, self._tip, self._pending)
            given = Calls(earlier, self._pending).link(given)
        pieces: list[bytes] = []
        self._pieces = pieces
        for each in given:
            parts = each.parts
            plain = len(parts) == 1 and type(parts[0]) is Text  # the usual case
            if plain and not (each.name or each.model or each.id):
                pass
            elif not gathering.passes(names_of(each)):
                each = renamed(each, gathering.text)
            piece = encode_message(
                each.role, each.parts, put, each.kind, each.name, each.model, each.id
            )
            if piece is None:
                return False
            pieces.append(piece)
        if self._message:
            self.message = gathering.text(self._message)
        return 0 < len(pieces) < ARRAY16_LIMIT

    def make(self, tip: ObjectId | None) -> tuple[ObjectId, list[tuple[ObjectId, bytes]]]:
        """Return the id of the commit on top of a tip, and all objects to write."""
        if tip is None and isinstance(self._ref, str):
            self._writer.guard.check_name(self._ref)
        if tip != self._tip:
            self._set_tip(tip)
            if self._results:
                self._encode()
        gathering, pieces, time = self._gathering, self._pieces, self._store.clock.now()
        found = gathering.secrets
        meta = encode_ordered(dict(gathering.facts)) if found and gathering.facts else b""
        data = encode_commit(tip, self.author, time, pieces, meta=meta, message=self.message)
        if data is None:
            raise errors.InvalidInputError(
                "the author is not plain text, or the clock returned no integer"
            )
        oid = hash_object(data)
        parents = () if tip is None else (tip,)
        ref = self._ref if isinstance(self._ref, str) else None
        replaced = _redacted(gathering) if found else found
        self._result = CommitResult(
            *(self._writer, oid, ref, len(pieces), parents, found), redacted=replaced
        )
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
        self._store.pending_calls[self._ref] = result.oid, pending
        return result


class _CommitBuilder:
    """Builds the commit of a draft on the branch's current tip.

    Attributes:
        onto: the required tip; None accepts any.
        rewinds: whether the commit follows `onto` wherever the branch is.
    """

    def __init__(
        self,
        draft: Draft,
        message: str,
        meta: Mapping[str, Any] | None,
        links: Sequence[tuple[str, ObjectId | str]],
        onto: ObjectId | None,
        *,
        is_alone: bool,
        rewinds: bool = False,
    ) -> None:
        self.rewinds = rewinds
        self._change = draft.change
        self._store = draft.change.writer.store
        self._draft = draft
        self._message = message
        self._meta = meta
        self._links = links
        self.onto = onto
        self._checked: ObjectId | bool | None = False
        self._result: CommitResult | None = None
        self._changed_along: tuple[Address, ...] = ()
        self._linked_operations: tuple[ObjectId | None, list[Operation]] | None = None
        always = (ops.ADD, *ops.LEAVES_CONTEXT)
        is_new = links or not is_alone or any(each.name in always for each in draft.operations)
        self._may_be_empty = not is_new
        self._has_targets = not all(map(ops.is_append, draft.operations))
        self._has_results = any(map(_has_results, draft.operations))

    @property
    def needs_history(self) -> bool:
        """Whether the operations depend on the context of the branch."""
        return self._has_results or self._has_targets or self._may_be_empty

    def written(self) -> CommitResult:
        """Return the result of the transaction."""
        if self._result is None:
            raise errors.InvalidOperationError("nothing to commit")
        return self._result

    def unchanged(self, ref: str | None) -> CommitResult:
        """Return the result if there was nothing to do."""
        tip = self._checked
        assert isinstance(tip, ObjectId)  # a branch without a commit holds nothing to change
        parents = read_commit(tip, self._store.objects.read).parents
        found = self._change.gathering.secrets
        return CommitResult(self._change.writer, tip, ref, 0, parents, found, changed=False)

    def commit(self, tip: ObjectId | None, ref: str | None) -> ObjectId:
        """Add the commit on top of a tip to the change, and return its id."""
        base = tip
        if self.rewinds or self.onto is not None:
            base = self.onto
            if tip is not None and tip != base and not self.rewinds:
                raise errors.RefChangedError(
                    f"{ref or 'HEAD'} moved meanwhile", ref=ref, expected=base, actual=tip
                )
        self.prepare(base)
        made = self._commit(base)
        oid = self._change.add(made)
        gathering, count = self._change.gathering, self._draft.message_count
        self._result = CommitResult(
            *(self._change.writer, oid, ref, count, made.parents, gathering.secrets),
            also=self._changed_along,
            redacted=_redacted(gathering),
        )
        return oid

    def prepare(self, tip: ObjectId | None) -> None:
        """Link results to calls and check targets against the fold of a tip, once for each tip.

        Raises:
            _NothingToDoError: the context would stay as it is.
        """
        if not self.needs_history or (self._checked is not False and self._checked == tip):
            return
        self._operations(tip)
        if self._has_targets:
            changes = self._check(tip)
        else:
            changes = tip is None or not self._may_be_empty or self._sets_other_tools(tip)
        self._checked = tip
        if not changes and tip is not None and self._may_be_empty:
            raise _NothingToDoError

    def _check(self, tip: ObjectId | None) -> bool:
        """Check targets and edits; return True if the context would change."""
        made = self._commit(tip)
        before = self._fold(tip)
        state = before.copy()
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
        return not state.same_state(before)

    def _sets_other_tools(self, tip: ObjectId) -> bool:
        """Return True if operations that only set tools set other ones; this needs no fold."""
        schemas = self._draft.operations[-1].fields["schemas"]
        return [*schemas] != [*self._change.writer.contexts.tools_at(tip)]

    def _fold(self, tip: ObjectId | None) -> Fold:
        return context.fold.Fold() if tip is None else context.snapshots.fold_of(self._store, tip)

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
        """Return the operations on a tip: results name their calls, and restored messages their wordings."""
        made = self._draft.operations
        if not (self._has_results or self._draft.backward):
            return made
        if self._linked_operations is None or self._linked_operations[0] != tip:
            if self._has_results:
                earlier = _calls_before(self._store, tip)
                made = link_operations(made, Calls(earlier))
                made = [self._link_edit(each, tip, earlier) for each in made]
            self._linked_operations = tip, self._step_back(made, tip)
        return self._linked_operations[1]

    def _step_back(self, operations: list[Operation], tip: ObjectId | None) -> list[Operation]:
        """Return operations that show hidden messages, and take others back by one wording, where a draft says so."""
        made: list[Operation] = []
        for operation in operations:
            if not any(operation is each for each in self._draft.backward):
                made.append(operation)
                continue
            state = self._fold(tip)
            if made:
                state = state.copy()
                state.apply(HERE, Commit((), "", 0, made))
            made += _restoring(state, operation)
        return made

    def _link_edit(
        self, operation: Operation, tip: ObjectId | None, earlier: HistoryCalls
    ) -> Operation:
        """Return an edit with its results linked as in the message that it edits."""
        if operation.name != ops.EDIT:
            return operation
        target = read_address(operation.fields["target"], HERE)
        state = self._fold(tip)
        before = [v.parts for v in state.entry(target).versions] if target in state else []
        parts = link_version(operation.fields["parts"], before, Calls(earlier).answer)
        return Operation(ops.EDIT, {**operation.fields, "parts": parts})

    def _commit(self, tip: ObjectId | None) -> Commit:
        return Commit(
            [] if tip is None else [tip],
            self._change.author,
            self._store.clock.now(),
            self._operations(tip),
            self._message,
            self._meta,
            self._links,
        )


def _calls_before(
    store: Store, tip: ObjectId | None, pending: Mapping[str, Address] | None = None
) -> HistoryCalls:
    return HistoryCalls(
        tip,
        lambda oid: read_commit(oid, store.objects.read),
        lambda oid: context.snapshots.fold_of(store, oid),
        pending,
    )


def _restoring(state: Fold, operation: Operation) -> list[Operation]:
    """Return a `restore` for each wording that its targets go back to; None shows hidden ones as they are."""
    found: dict[int | None, list[Address]] = {}
    for address in ops.targets_of(operation, HERE):
        entry = state.entry(address) if address in state else None
        version = None if entry is None or entry.hidden else entry.earlier
        found.setdefault(version, []).append(address)
    return [ops.restore(targets, version=version) for version, targets in found.items()]


def _acts_on_units(operation: Operation) -> bool:
    return operation.name in _ON_UNITS or "priority" in operation.fields


def _has_results(operation: Operation) -> bool:
    versions = [each["parts"] for each in operation.fields.get("messages", ())]
    versions.append(operation.fields.get("parts", ()))
    return any(part["type"] == RESULT for parts in versions for part in parts)


def _check_origins(draft: Draft) -> None:
    """Raise as `write` if a source is missing; it need not be in the context.

    A source that is also replaced is checked as the target that it is.
    """
    sources: dict[Address, None] = {}
    writer = draft.change.writer
    store = writer.store
    for operation in draft.operations:
        named = set(ops.targets_of(operation, HERE)) if "sources" in operation.fields else ()
        found = (Address(*each) for each in operation.fields.get("sources", ()))
        sources.update(dict.fromkeys(each for each in found if each.birth and each not in named))
        about = operation.fields.get("about")
        if about is not None:
            read_commit(ObjectId(about), store.objects.read)
    if sources and (tip := store.refs.head().oid) is not None:
        state = writer.contexts.fold(tip)  # a compression has it already
        sources = {each: None for each in sources if each not in state}
    revisions.require_messages(store, sources)


def _redacted(gathering: ObjectCollector) -> Mapping[str, int]:
    """Return how many secrets of each kind were replaced."""
    found = gathering.secrets
    unchanged = found and gathering.unchanged_secrets
    if not unchanged:
        return found
    left = {kind: count - unchanged.get(kind, 0) for kind, count in found.items()}
    return {kind: count for kind, count in left.items() if count}


def _reflog_message(message: str) -> str:
    """Return the reflog entry for a commit message."""
    return f"commit: {message.splitlines()[0]}" if message else "commit"


__all__ = [
    "Address",
    "CommitResult",
    "batch",
    "commit",
    "write",
]
