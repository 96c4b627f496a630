"""Retention of the trash: the configured rules, and the entries that expire.

Nothing expires unless the configuration or the caller sets a rule. If several rules apply to an entry, the report names
the first: age, count, size. Entries covered by `keep` never expire. An entry that was fetched by git has no known age
and counts as the newest.
"""

from __future__ import annotations

from trace_store.base.frozen import value
from trace_store.base.ident import count_of, is_count, parse_duration
from trace_store.contracts.ref_names import SESSIONS
from trace_store.history.trash_entries import TrashedRef, list_refs, unique_commits
from trace_store.maintenance.du import Amount, own_amounts, total_amount
from trace_store.objects import operations as ops
from trace_store.objects.commit import read_commit
from trace_store.store import config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from trace_store.store.config import Value
    from trace_store.store.store import Store

KEEP_PINNED, KEEP_CHECKPOINTS, KEEP_TAGS, KEEP_SUMMARIES = config.KEPT


@value
class RetentionRules:
    """Rules for when entries of the trash expire.

    Attributes:
        age_ms: the maximum age in milliseconds; None for no limit.
        sessions: an entry expires once this many newer sessions exist; None for no limit.
        count: the maximum number of refs; None for no limit.
        size_bytes: the maximum disk space used only by the trash; None for no limit.
        keep: kinds of entries that never expire: refs with their own pinned messages or summaries, tags, checkpoints.
    """

    age_ms: int | None = None
    sessions: int | None = None
    count: int | None = None
    size_bytes: int | None = None
    keep: frozenset[str] = frozenset(config.KEPT)

    @property
    def is_empty(self) -> bool:
        """Whether no rule is set."""
        return self.age_ms is self.sessions is self.count is self.size_bytes is None


@value
class ExpiryReport:
    """The result of an expiry or its dry run.

    Attributes:
        expired: refs in the trash, each with the rule that applies: "age" (also for `sessions`), "count" or "size".
        kept: refs that would have expired, each with the reason to keep it, such as "pinned".
        freed: objects and bytes that nothing else reaches.
    """

    expired: tuple[tuple[TrashedRef, str], ...]
    kept: tuple[tuple[TrashedRef, str], ...]
    freed: Amount


def read_rules(store: Store, given: Mapping[str, object] | None = None) -> RetentionRules:
    """Return the configured rules; `given`, such as `{"trash_count": 10}`, overrides.

    Raises:
        InvalidInputError: a setting is not valid.
    """
    settings: dict[str, Value | None] = {}
    for key in (config.TRASH_RETENTION, config.TRASH_COUNT, config.TRASH_SIZE, config.TRASH_KEEP):
        found = (given or {}).get(key)
        found = store.config.get(key) if found is None else found
        settings[key] = None if found is None else config.KNOWN_KEYS[key](found)
    number, _, unit = str(settings[config.TRASH_RETENTION] or "").partition(" ")
    by_session = is_count(number) and unit.startswith("session")
    count, size = settings[config.TRASH_COUNT], settings[config.TRASH_SIZE]
    keep = settings[config.TRASH_KEEP]
    return RetentionRules(
        None if by_session else parse_duration(f"{number} {unit}"),  # None for "by hand"
        count_of(number) if by_session else None,
        count if isinstance(count, int) else None,
        size if isinstance(size, int) else None,
        frozenset(config.KEPT if keep is None else str(keep).split(", ")),
    )


def expires_before(store: Store, rules: RetentionRules) -> int:
    """Return the time in ms before which entries expire by age or sessions, or 0."""
    if rules.age_ms is not None:
        return max(store.clock.now() - rules.age_ms, 0)
    if rules.sessions is None:
        return 0
    if rules.sessions == 0:
        return store.clock.now()
    starts = []
    for ref, _ in store.refs.iterate(SESSIONS):
        # A session is <format>/<id>; deeper refs are of its sub-agents.
        entries = store.refs.reflog(ref) if ref.removeprefix(SESSIONS).count("/") <= 1 else []
        starts += [entries[-1].time] if entries else []
    starts.sort(reverse=True)
    return starts[rules.sessions - 1] if len(starts) >= rules.sessions else 0


def plan_expiry(store: Store, rules: RetentionRules) -> ExpiryReport:
    """Return the refs in the trash that expire, and the space that this would free.

    Raises:
        ObjectNotFoundError, CorruptObjectError: the history is incomplete or damaged.
        StorageError: the disk failed.
    """
    if rules.is_empty:
        return ExpiryReport((), (), Amount())
    # Newest first; entries of unknown age before all.
    entries = sorted(list_refs(store), key=lambda each: (each.time > 0, -each.time, each.ref))
    before = expires_before(store, rules)
    why: dict[str, str] = {}
    for number, entry in enumerate(entries):
        if 0 < entry.time < before:
            why[entry.ref] = "age"
        elif rules.count is not None and number >= rules.count:
            why[entry.ref] = "count"
    if rules.size_bytes is not None:
        total = 0  # objects that several entries have count for the newest
        for entry, amount in zip(
            entries, own_amounts(store, [each.ref for each in entries]), strict=True
        ):
            total += amount.disk
            if total > rules.size_bytes and amount.disk:
                why.setdefault(entry.ref, "size")
    due = [each for each in entries if each.ref in why]
    kept = [(each, reason) for each in due if (reason := _kept_by(store, each, rules.keep))]
    stay = {each.ref for each, _ in kept}
    expired = [(each, why[each.ref]) for each in due if each.ref not in stay]
    amounts = own_amounts(store, [each.ref for each, _ in expired]) if expired else []
    freed = total_amount(amounts)
    return ExpiryReport(tuple(expired), tuple(kept), freed)


def _kept_by(store: Store, entry: TrashedRef, keep: frozenset[str]) -> str:
    """Return the reason to keep an entry, or ""; reads only commits unique to it."""
    if KEEP_CHECKPOINTS in keep and entry.kind == "checkpoint":
        return KEEP_CHECKPOINTS
    if KEEP_TAGS in keep and entry.kind == "tag":
        return KEEP_TAGS
    if not keep & {KEEP_PINNED, KEEP_SUMMARIES}:
        return ""
    for oid in unique_commits(store, entry):
        for operation in read_commit(oid, store.objects.read).operations:
            fields = operation.fields
            carried = fields["messages"] if operation.name in ops.ADDS_MESSAGES else ()
            # A replacement without messages only hides some, as when a summary is expanded.
            if KEEP_SUMMARIES in keep and operation.name == ops.REPLACE and carried:
                return KEEP_SUMMARIES
            if KEEP_PINNED in keep and any(
                each.get("priority") == ops.PINNED for each in (fields, *carried)
            ):
                return KEEP_PINNED
    return ""
