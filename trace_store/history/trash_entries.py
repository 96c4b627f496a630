"""The contents of the trash: removed messages, deleted refs, and old tips.

The list is not stored: its messages are the removed entries of a fold, and its refs are those below `refs/trash/`.
Messages that a summary replaced are hidden but not in the trash. Emptying the trash puts the label
EMPTIED on a removed message, which is then no longer listed.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.context.content import message_line
from trace_store.context.fold import REMOVED
from trace_store.contracts.ref_names import NAMESPACES, TRASH, check_text
from trace_store.history.summary import tip_summary
from trace_store.history.trash_refs import OTHER, original_of
from trace_store.objects import operations as ops
from trace_store.objects.commit import read_commit
from trace_store.objects.content import read_content
from trace_store.objects.message import FREEFORM, kind_of, part_blobs
from trace_store.store import revision as revisions
from trace_store.store.revision import commits_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trace_store.base.ident import Time
    from trace_store.base.oid import ObjectId
    from trace_store.context.compiler import ContextCompiler
    from trace_store.context.fold import Entry, Fold
    from trace_store.objects.address import Address
    from trace_store.store.store import Store

MESSAGE = "message"
EMPTIED = "trash-emptied"
"""The label of a removed message that is no longer listed, because the trash was emptied."""
_LINE_CHARACTERS = 72


@value
class HiddenMessage:
    """A removed message of a branch.

    Attributes:
        address: its address.
        branch: the branch or revision, as requested, whose context hides it.
        role, kind: as in `Message`.
        tools: the tools that it calls, or whose results it holds.
        ghost: whether a placeholder is shown for it.
        time: when it was removed, in milliseconds since the epoch.
        token_count: its tokens, in the repository's encoding.
        text: its first words, on one line.
    """

    address: Address
    branch: str
    role: str
    kind: str
    tools: tuple[str, ...]
    ghost: bool
    time: Time
    token_count: int
    text: str


@value
class TrashedRef:
    """A ref in the trash.

    Attributes:
        ref: its full name, below `refs/trash/`.
        kind: "branch", "tag", "checkpoint", or "other" for a detached HEAD and the like.
        original: full name of the ref that had this value; "" if no ref had.
        oid: the value.
        time: when it came into the trash, in milliseconds since the epoch; 0 if unknown, because git fetched it.
        exists: whether the original ref still exists: it was moved to another value, not deleted.
        text: the summary of the commit, on one line.
    """

    JSON = "entry=kind original? object=oid"

    ref: str
    kind: str
    original: str
    oid: ObjectId
    time: Time
    exists: bool
    text: str

    @property
    def name(self) -> str:
        """The short name of the original ref, or else of this one."""
        return self.original.split("/", 2)[2] if self.original else self.ref.removeprefix(TRASH)


@value
class TrashListing:
    """Entries of the trash: messages in the order of the context, and refs, newest first."""

    messages: tuple[HiddenMessage, ...]
    refs: tuple[TrashedRef, ...]

    @property
    def token_count(self) -> int:
        """Tokens of the messages, in the repository's encoding."""
        return sum(each.token_count for each in self.messages)

    @property
    def ref_counts(self) -> dict[str, int]:
        """The number of refs of each kind: branches, tags, checkpoints, others."""
        return {kind: sum(ref.kind == kind for ref in self.refs) for kind in kinds_of_refs()}


@value
class TrashFilter:
    """Conditions on entries of the trash, all of which must hold.

    Attributes:
        kinds: kinds of entries ("message", "branch", …) or of messages ("tool_io", …); empty for all.
        min_tokens: only messages with at least this many tokens.
        before: only entries older than this time in milliseconds; None for any time.
        since: only entries of this time or later, or of an unknown time.
        tool: only messages of this tool.
        text: only messages that contain this text, ignoring case, and refs whose name, summary or unique messages do.
    """

    kinds: tuple[str, ...] = ()
    min_tokens: int = 0
    before: int | None = None
    since: int = 0
    tool: str = ""
    text: str = ""


def list_messages(
    contexts: ContextCompiler, branch: str = "HEAD", where: TrashFilter | None = None
) -> list[HiddenMessage]:
    """Return the removed messages of a branch's context, in the order of the context.

    Raises:
        RevisionNotFoundError: there is no such branch.
        ObjectNotFoundError, CorruptObjectError: the history is incomplete or damaged.
    """
    store, where = contexts.store, where or TrashFilter()
    check_text(branch)
    if branch in ("HEAD", "@") and store.refs.head().oid is None:
        return []
    tip = revisions.resolve_commit(store, branch)
    state = contexts.fold(tip)
    removals = _removals(contexts, tip, state)
    contains = _text_search(store, where.text)
    hidden = [
        entry
        for entry in state.entries
        if entry.address in removals
        and _matches(where, state, entry, removals[entry.address])
        and (not where.text or any(map(contains, part_blobs(entry.parts))))
    ]
    counts = contexts.weigh([{**entry.message, "parts": entry.parts} for entry in hidden])
    return [
        _hidden_message(store, state, entry, branch, removals[entry.address], count)
        for entry, count in zip(hidden, counts, strict=True)
        if count >= where.min_tokens
    ]


def list_refs(
    store: Store, branch: str | None = None, where: TrashFilter | None = None
) -> list[TrashedRef]:
    """Return the refs in the trash, newest first; those of unknown time come last.

    Args:
        store: the repository's store.
        branch: only those of this branch (short name); None for all.
        where: conditions on them; no ref matches a condition on the tool or the tokens.
    """
    where = where or TrashFilter()
    if where.tool or where.min_tokens:
        return []
    found = [_trashed_ref(store, ref, oid) for ref, oid in store.refs.iterate(TRASH)]
    found = [
        each
        for each in found
        if (branch is None or each.original == f"refs/heads/{branch.removeprefix('refs/heads/')}")
        and (not where.kinds or each.kind in where.kinds)
        and (not each.time or each.time >= where.since)
        and (where.before is None or 0 < each.time < where.before)
    ]
    if where.text:
        contains = _text_search(store, where.text)
        found = [each for each in found if _ref_contains(store, each, where.text, contains)]
    return sorted(found, key=lambda each: (-each.time, each.ref))


def find_ref(store: Store, text: str) -> TrashedRef | None:
    """Return the ref in the trash with a name such as `idea` or `heads/idea/1f2e3d4c5b6a`; None without one.

    Raises:
        AmbiguousRevisionError: several tips of the ref are in the trash.
    """
    check_text(text)
    found = [
        each
        for each in list_refs(store)
        if text in (each.ref, each.ref.removeprefix("refs/"), each.ref.removeprefix(TRASH))
        or (each.original and text in (each.name, each.original))
    ]
    if len(found) > 1:
        raise errors.AmbiguousRevisionError(
            f"{len(found)} entries of the trash are named {text[:120]!r}",
            revision=text,
            candidates=tuple(each.ref for each in found),
        )
    return found[0] if found else None


def unique_commits(store: Store, ref: TrashedRef) -> list[ObjectId]:
    """Return the entry's commits that no ref outside the trash reaches, newest first."""
    try:
        tip = revisions.resolve_commit(store, bytes(ref.oid))
        return list(commits_of(store).topological([tip], _live_commits(store)))
    except (errors.NotFoundError, errors.InvalidInputError):
        return []


def _live_commits(store: Store) -> list[ObjectId]:
    """Return the commits of all refs outside the trash, and of HEAD."""
    found = [oid for name, oid in store.refs.iterate("refs/") if not name.startswith(TRASH)]
    head = store.refs.head().oid
    commits: list[ObjectId] = []
    for oid in dict.fromkeys([*found, *([head] if head else [])]):
        try:
            commits.append(revisions.resolve_commit(store, bytes(oid)))
        except (errors.NotFoundError, errors.InvalidInputError):
            continue  # not a commit, or missing
    return commits


def _removals(contexts: ContextCompiler, tip: ObjectId, state: Fold) -> dict[Address, int]:
    """Return the removal time of each listed message: removed, and not emptied since.

    The history is read from the tip backwards until the last removal of each message is known.
    """
    pending = {entry.address for entry in state.entries if entry.hidden == REMOVED}
    found: dict[Address, int] = {}
    emptied: set[Address] = set()
    oid: ObjectId | None = tip
    while pending and oid is not None:
        commit = contexts.read_commit(oid)
        removed: set[Address] = set()
        for operation in reversed(commit.operations):
            if operation.name == ops.REMOVE:
                targets = ops.targets_of(operation, oid)
                removed |= pending.intersection(state.units(targets))
            elif operation.name == ops.ANNOTATE and EMPTIED in operation.fields.get("labels", ()):
                targets = ops.targets_of(operation, oid)
                emptied |= pending.difference(removed).intersection(targets)
        for address, stored in ops.added_messages(commit, oid):
            if address in pending and (ops.BORN not in stored or stored.get("hidden")):
                removed.add(
                    address
                )  # a merge carried it already removed, or it joined a removed unit
                emptied |= {address} if EMPTIED in stored.get("labels", ()) else set()
        found |= dict.fromkeys(removed - emptied, commit.time)
        pending -= removed
        oid = commit.parents[0] if commit.parents else None
    return found


def _matches(where: TrashFilter, state: Fold, entry: Entry, time: int) -> bool:
    kinds = where.kinds
    return (
        (not kinds or MESSAGE in kinds or (kind_of(entry.message) or FREEFORM) in kinds)
        and time >= where.since
        and (where.before is None or time < where.before)
        and (not where.tool or where.tool in _tools(state, entry))
    )


def _hidden_message(
    store: Store, state: Fold, entry: Entry, branch: str, time: int, count: int
) -> HiddenMessage:
    stored = {**entry.message, "parts": entry.parts}
    return HiddenMessage(
        entry.address,
        branch,
        stored["role"],
        kind_of(stored) or FREEFORM,
        _tools(state, entry),
        entry.is_ghost,
        time,
        count,
        message_line(stored, store.objects.read, _LINE_CHARACTERS).partition(": ")[2],
    )


def _tools(state: Fold, entry: Entry) -> tuple[str, ...]:
    """Return the tools that a message calls, or whose results it holds."""
    calls = [entry, *(state.entry(each) for each in entry.answers if each in state)]
    named = [part for each in calls for part in each.parts if part["type"] == "tool_call"]
    return tuple(dict.fromkeys(str(part["name"]) for part in named))


def _trashed_ref(store: Store, ref: str, oid: ObjectId) -> TrashedRef:
    kind, original = original_of(ref)
    entries = store.refs.reflog(ref)  # newest first
    time = next((each.time for each in entries if each.new == oid and each.old != oid), 0)
    exists = bool(original) and store.refs.read(original) is not None
    try:
        tip = revisions.resolve_commit(store, bytes(oid))
        text = tip_summary(store, read_commit(tip, store.objects.read))
    except (errors.NotFoundError, errors.InvalidInputError, errors.FormatError):
        text = ""
    return TrashedRef(ref, kind, original, oid, time, exists, text)


def _text_search(store: Store, text: str) -> Callable[[bytes], bool]:
    """Return a case-insensitive test for a text in a blob; False if it is missing."""
    wanted = text.casefold()

    def contains(oid: bytes) -> bool:
        try:
            content = read_content(oid, store.objects.read)
        except (errors.NotFoundError, errors.FormatError):
            return False
        return wanted in content.decode("utf-8", "replace").casefold()

    return contains


def _ref_contains(
    store: Store, ref: TrashedRef, text: str, contains: Callable[[bytes], bool]
) -> bool:
    if any(text.casefold() in each.casefold() for each in (ref.name, ref.text)):
        return True
    blobs = (
        blob
        for oid in unique_commits(store, ref)
        for _, stored in ops.added_messages(read_commit(oid, store.objects.read), oid)
        for blob in part_blobs(stored["parts"])
    )
    return any(map(contains, blobs))


def kinds_of_refs() -> Sequence[str]:
    """Return the kinds of refs that can be in the trash."""
    return [*(each.kind for each in NAMESPACES if each.kind), OTHER]
