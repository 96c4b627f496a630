"""Revisions: text that names an object, a commit, a range or a message.

    HEAD  @            the checked-out commit            main~2  HEAD^2    ancestors, by first parents or by parent
    main  v1           branch, tag, or any ref           main@{1}  @{2}    the branch's value n moves ago
    ab12cd             id, or at least 4 digits of it    main@{TIME}       its value at a time
    -  @{-1}           the previously checked out branch     A..B  A...B       ranges
    @{u}  main@{u}     the branch's upstream  (also `upstream`)
    ORIG_HEAD          HEAD before the last reset, merge or rebase
    ab12cd.0  HEAD.2   message n that a commit adds
    062a8bdd           the branch of the session whose id starts so; also codex/062a8bdd
    user-42            the record of a framework's thread that was written last; also the name of a record

TIME is ISO 8601 (UTC unless it has a zone), `now`, `today`, `yesterday`, or like `2 hours ago` (also `2.hours.ago`).

Rule: read-only. Ref names win over abbreviated ids. One that starts the ids of an object and of a session is ambiguous;
where a session is expected (`branch_of`), the session wins.
"""

from __future__ import annotations

from trace_store import commit_table, errors, objects, refs
from trace_store import store as stores
from trace_store.base import ident
from trace_store.base.oid import HEX_CHARACTERS, OID_BYTES, ObjectId, is_full_id, is_prefix
from trace_store.contracts.ref_names import (
    BRANCHES,
    CHECKPOINTS,
    ORIGINAL,
    SESSIONS,
    TAGS,
    TRASH,
    is_ref_name,
)
from trace_store.objects.address import BIRTH_BYTES, Address, not_an_address
from trace_store.objects.codec import BLOB, COMMIT, TAG, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Protocol, TypeAlias

    from trace_store.commit_table.commits import Commits
    from trace_store.objects.commit import Commit
    from trace_store.store.store import Store

    Ends = tuple[list[ObjectId], list[ObjectId]]

    class Named(Protocol):
        """A value with the id of a commit: the result of a commit, an entry of the log, a branch, a tag."""

        @property
        def oid(self) -> ObjectId: ...

    Revision: TypeAlias = str | ObjectId | Named


_PLACES = ("", "refs/", TAGS, BRANCHES, CHECKPOINTS, TRASH)
_EMPTY_COMMITS = 16
"""After so many commits without a message, a branch counts as one with messages."""


class Range:
    """The commits that `A..B` or `A...B` selects.

    Attributes:
        include: commits whose history is included.
        exclude: commits whose history is excluded.
        symmetric: whether it is `A...B`.
    """

    __slots__ = ("exclude", "include", "symmetric")

    def __init__(
        self, include: list[ObjectId], exclude: list[ObjectId], *, symmetric: bool = False
    ) -> None:
        self.include = include
        self.exclude = exclude
        self.symmetric = symmetric


def commits_of(store: Store) -> commit_table.commits.Commits:
    """Return the commit graph of a store."""
    path = store.layout.commit_table_file
    table = commit_table.table.CommitTable(store.disk, path, store.config.store_id, store.objects)
    return commit_table.commits.Commits(store.objects, table)


def resolve(store: Store, text: str) -> ObjectId:
    """Return the id of the object that a revision names.

    Raises:
        RevisionNotFoundError: it names nothing, or a message; then `.address` holds the text.
        UnbornBranchError: it starts from HEAD, which has no commit yet.
        AmbiguousRevisionError: several ids start like this; `.candidates` holds them.
        InvalidInputError: it is not a valid revision.
    """
    if (oid := _full_id(store, text)) is not None:
        return oid
    try:
        return _resolve(store, text)
    except (errors.RevisionNotFoundError, errors.InvalidInputError):
        _reject_address(store, text)
        raise


def resolve_commit(
    store: Store, revision: str | bytes, commits: commit_table.commits.Commits | None = None
) -> ObjectId:
    """Return the id of the commit that a revision names, peeling tags.

    With `commits`, an id among the newest of their table is known to be a commit without reading it.

    Raises:
        RevisionNotFoundError: it names an object of another type; otherwise as `resolve`.
    """
    if isinstance(revision, bytes):
        return _peel(store, ObjectId(revision), revision.hex(), commits)
    oid = _full_id(store, revision)
    if oid is None and is_prefix(revision):
        oid = _abbreviated(store, revision, commits=True)
    return _peel(store, oid or resolve(store, revision), revision, commits)


def resolve_range(
    store: Store, text: str, commits: commit_table.commits.Commits | None = None
) -> Range:
    """Parse a range; a plain revision means its whole history, an empty side HEAD.

    Raises as `resolve_commit`, which also describes `commits`.
    """
    symmetric = "..." in text
    left, dots, right = text.partition("..." if symmetric else "..")
    if not dots:
        return Range([resolve_commit(store, text, commits)], [])
    first, last = (resolve_commit(store, side or "HEAD", commits) for side in (left, right))
    return Range([first, last], [], symmetric=True) if symmetric else Range([last], [first])


def resolve_address(store: Store, text: str) -> Address:
    """Return the address of the message that `revision.n` names.

    `n` counts the messages that the commit adds, from 0. If the birth commit is gone, a branch's message with that
    address is found.

    Raises:
        MessageNotFoundError: the commit adds no such message.
        InvalidInputError: the text does not end in a number.
        RevisionNotFoundError, AmbiguousRevisionError: as in `resolve`.
    """
    revision, dot, digits = text.rpartition(".")
    if not dot or not ident.is_count(digits):
        raise not_an_address(text)
    number = ident.count_of(digits)
    try:
        commit = resolve_commit(store, revision)
    except errors.RevisionNotFoundError:
        if (carried := _find_carried(store, revision, number)) is None:
            raise
        return carried
    return _added_message(store, commit, number)


def require_messages(store: Store, addresses: Iterable[Address]) -> None:
    """Check that messages exist; reads each birth commit once, and raises as `resolve_address`."""
    known: set[Address] = set()
    for address in addresses:
        if address not in known:
            for oid in store.objects.resolve_prefix(address.birth.hex()):
                commit = objects.commit.read_commit(oid, store.objects.read)
                known.update(each for each, _ in objects.operations.added_messages(commit, oid))
        if address not in known:
            resolve_address(store, address.hex)


def as_address(given: Any) -> Address:
    """Return the Address for an (id, number) pair; the id may be a whole commit id.

    Raises:
        InvalidInputError: the value is not such a pair.
    """
    if isinstance(given, tuple) and len(given) == 2:
        birth, number = given
        is_birth = isinstance(birth, bytes) and len(birth) in (BIRTH_BYTES, OID_BYTES)
        if is_birth and isinstance(number, int) and number >= 0:
            return Address.of(birth, number)
    raise not_an_address(given)


def _added_message(store: Store, commit: ObjectId, number: int) -> Address:
    born = objects.commit.read_commit(commit, store.objects.read)
    for at, (address, _) in enumerate(objects.operations.added_messages(born, commit)):
        if at == number:
            return address
    count = objects.operations.added_by(born)
    raise errors.MessageNotFoundError(
        f"commit {commit.short()} adds {count} message{'' if count == 1 else 's'}, "
        f"none numbered {number}",
        address=Address.of(commit, number),
    )


def _find_carried(store: Store, prefix: str, number: int) -> Address | None:
    """Find a message on a branch whose birth commit starts with `prefix` but is gone."""
    prefix = prefix[: 2 * BIRTH_BYTES]
    if not is_prefix(prefix):
        return None
    head = store.refs.head().oid
    pending = [*(tip for _, tip in store.refs.iterate(BRANCHES)), *([head] if head else [])]
    seen: set[bytes] = set()
    while pending:
        oid = pending.pop()
        if oid in seen:
            continue
        seen.add(oid)
        commit = objects.commit.read_commit(oid, store.objects.read)
        for address, _ in objects.operations.added_messages(commit, oid):
            if address.number == number and address.birth.hex().startswith(prefix):
                return address
        pending += reversed(commit.parents)
    return None


def ref_of(store: Store, name: str) -> str | None:
    """Return the full name of the ref that a short name means, or None."""
    if name in ("HEAD", "@") or not name:
        return store.refs.head().ref
    for place in _PLACES:
        full = place + name
        if is_ref_name(full) and store.refs.read(full) is not None:
            return full
    return None


def branch_of(store: Store, name: str) -> str | None:
    """Return the full name of the ref, session branch or record of a short name, or None.

    Raises:
        AmbiguousRevisionError: several sessions match; `.candidates` holds their branches.
    """
    ref = ref_of(store, name)
    if ref is not None or name in ("HEAD", "@") or not name or is_full_id(name):
        return ref
    wanted = name.removeprefix("sessions/")
    depth = SESSIONS.count("/") + 1
    exact: list[str] = []
    matches: list[str] = []
    for full, _ in store.refs.iterate(SESSIONS):
        path = full.removeprefix(SESSIONS)
        session = path if "/" in wanted else path.partition("/")[2]
        if full.count("/") == depth and session.startswith(wanted):
            matches.append(full)
            if session == wanted:
                exact.append(full)  # several programs may use the same id
    matches = exact or matches or stores.thread_lookup.records_named(store, name)
    if len(matches) > 1:
        candidates = [full.removeprefix(BRANCHES) for full in matches]
        verb = "have the id" if exact else "start with"
        raise errors.AmbiguousRevisionError(
            f"several sessions {verb} {name[:80]}", revision=name, candidates=candidates
        )
    return matches[0] if matches else None


def upstreams(store: Store) -> dict[str, str]:
    """Return each branch's upstream, both as full names."""
    return refs.head.read_upstreams(store.disk, store.layout.upstreams_file)


def parse_moment(text: str, store: Store, *, is_end: bool = False) -> int | None:
    """Return the milliseconds of a time as `base.ident.parse_moment`."""
    return ident.parse_moment(text, store.clock.now(), is_end=is_end)


def newest_not_after(store: Store, start: ObjectId, moment: int) -> ObjectId | None:
    """Return the newest first-parent ancestor whose time is at most `moment`, or None."""
    oid: ObjectId | None = start
    while oid is not None:
        commit = objects.commit.read_commit(oid, store.objects.read)
        if commit.time <= moment:
            return oid
        oid = commit.parents[0] if commit.parents else None
    return None


def _resolve(store: Store, text: str) -> ObjectId:
    base, suffixes = _split(text)
    oid = _base(store, base, suffixes, text)
    for suffix in suffixes:
        oid = _step(store, oid, suffix, text)
    return oid


def _reject_address(store: Store, text: str) -> None:
    """Raise if a text that is not a revision is the address of a message."""
    revision, _, digits = text.rpartition(".")
    if not (revision and ident.is_count(digits)):
        return
    try:
        commit = _peel(store, _resolve(store, revision), revision)
        _added_message(store, commit, ident.count_of(digits))
    except (errors.NotFoundError, errors.InvalidInputError):
        return
    raise errors.RevisionNotFoundError(
        f"{text[:120]} names a message, not a commit", revision=text, address=text
    )


def _full_id(store: Store, text: str) -> ObjectId | None:
    """Return the id if the text is the full id of an existing object.

    It wins over any name.
    """
    if not is_full_id(text):
        return None
    oid = ObjectId.parse(text)
    try:  # pruned objects stay readable for a while
        return oid if store.objects.contains(oid) or store.objects.read(oid) else None
    except (errors.NotFoundError, errors.FormatError):
        return None


def _split(text: str) -> tuple[str, list[str]]:
    """Split a revision into its base and the suffixes `~n`, `^n`, `@{…}`."""
    if not text or any(ord(c) < 33 and c != " " for c in text) or ".." in text:
        raise errors.InvalidInputError(f"not a revision: {text[:80]!r}", text=text)
    base, rest, at = text, "", 0
    while at < len(text):
        if text[at] in "~^" or text.startswith("@{", at):
            base, rest = text[:at], text[at:]
            break
        at += 1
    suffixes: list[str] = []
    while rest:
        if rest.startswith(("@{", "^{")):
            end = rest.find("}") + 1
        else:
            end = 1
            while end < len(rest) and rest[end].isascii() and rest[end].isdigit():
                end += 1
        if end <= 0 or rest[0] not in "~^@" or (rest[0] == "@" and not rest.startswith("@{")):
            raise errors.InvalidInputError(f"not a revision: {text[:80]!r}", text=text)
        suffixes.append(rest[:end])
        rest = rest[end:]
    return base, suffixes


def refs_by_time(store: Store, prefix: str = BRANCHES) -> list[str]:
    """Return the full names of all branches, or the refs under another prefix, the one with the newest commit first.

    Refs below another one, such as branches of subagents, come last; so do branches without messages, such as
    attributions, and refs whose commit cannot be read.
    """
    tips = dict(store.refs.iterate(prefix))
    read = store.objects.read

    def order(ref: str) -> tuple[bool, int, str]:
        try:
            commit = objects.commit.read_commit(tips[ref], read)
            is_work = prefix != BRANCHES or _has_messages(commit, read)
        except errors.TraceError:
            return False, 0, ref
        above = ref.rpartition("/")[0]
        while above and above not in tips:
            above = above.rpartition("/")[0]
        return not above and is_work, commit.time, ref

    return sorted(tips, key=order, reverse=True)


def _has_messages(commit: Commit, read: Callable[[bytes], bytes]) -> bool:
    """Return False if a commit and those before it add no message; True also if `_EMPTY_COMMITS` do not tell."""
    for _ in range(_EMPTY_COMMITS):
        if objects.operations.added_by(commit):
            return True
        if not commit.parents:
            return False
        commit = objects.commit.read_commit(commit.parents[0], read)
    return True


def _base(store: Store, base: str, suffixes: list[str], text: str) -> ObjectId:
    """Return the object that a revision starts from.

    Removes a leading `@{…}` from `suffixes`.
    """
    if base == "-":
        base, suffixes[:0] = "", ["@{-1}"]
    if suffixes and suffixes[0].startswith("@{"):
        return _from_reflog(store, base, suffixes.pop(0)[2:-1], text)
    if base in ("HEAD", "@"):
        oid = store.refs.head().oid
        if oid is None:
            raise errors.UnbornBranchError(
                f"{base} has no commit yet", revision=text, branches=refs_by_time(store)
            )
        return oid
    if base == ORIGINAL:
        oid = store.refs.original()
        if oid is None:
            raise errors.RevisionNotFoundError("ORIG_HEAD is not set", revision=text)
        return oid
    if is_prefix(base):
        oid = _abbreviated(store, base, commits=bool(suffixes))
        return _id(store, base) if oid is None else oid
    ref = branch_of(store, base) if base else None
    oid = None if ref is None else store.refs.read(ref)
    if oid is not None:
        return oid
    raise errors.RevisionNotFoundError(f"no revision {text[:120]!r}", revision=text)


def _abbreviated(store: Store, prefix: str, *, commits: bool) -> ObjectId | None:
    """Return what a ref name, or the beginning of the id of an object or a session, names; None for nothing.

    With `commits`, only a commit or a tag is meant, if one of the objects is one.

    Raises:
        AmbiguousRevisionError: several objects or sessions match, or both do.
    """
    is_full = len(prefix) == HEX_CHARACTERS
    ref = None if is_full else branch_of(store, prefix)
    if ref is not None and ref_of(store, prefix) == ref:
        return store.refs.read(ref)
    matches = store.objects.resolve_prefix(prefix)
    if ref is None:
        return _id(store, prefix, commits=commits) if matches else None
    if commits:
        matches = [oid for oid in matches if _is_commit(store, oid)]
    if matches:
        raise errors.AmbiguousRevisionError(
            f"{prefix} starts the ids of a session and of {_count_of(matches)}",
            revision=prefix,
            candidates=[ref.removeprefix(BRANCHES), *matches],
        )
    return store.refs.read(ref)


def _count_of(matches: Sequence[ObjectId]) -> str:
    return "an object" if len(matches) == 1 else f"{len(matches)} objects"


def _is_commit(store: Store, oid: ObjectId) -> bool:
    """Return True if an object is a commit or a tag; what cannot be read may be one."""
    try:
        return kind_of(store.objects.read(oid)) in (COMMIT, TAG)
    except (errors.NotFoundError, errors.FormatError):
        return True


def _id(store: Store, prefix: str, *, commits: bool = False) -> ObjectId:
    matches = store.objects.resolve_prefix(prefix)
    if commits and len(matches) > 1:
        kinds = [(oid, kind_of(store.objects.read(oid))) for oid in matches]
        matches = [oid for oid, kind in kinds if kind in (COMMIT, TAG)] or matches
    if not matches:
        raise errors.RevisionNotFoundError(f"no object starts with {prefix}", revision=prefix)
    if len(matches) > 1:
        raise errors.AmbiguousRevisionError(
            f"several objects start with {prefix}", revision=prefix, candidates=matches
        )
    return matches[0]


def _from_reflog(store: Store, base: str, inner: str, text: str) -> ObjectId:
    """Resolve `base@{n}`, `base@{TIME}`, or `@{-n}`, the n-th previous branch."""
    if inner.startswith("-") and ident.is_count(inner[1:]) and not base:
        return resolve(
            store, refs.reflog.previous_branch(store.refs, ident.count_of(inner[1:]), text)
        )
    if inner.lower() in ("u", "upstream"):
        branch = branch_of(store, base)
        if branch is None and base not in ("", "HEAD", "@"):
            raise errors.RevisionNotFoundError(f"no branch {base[:80]!r}", revision=text)
        return resolve(store, refs.head.upstream_in(upstreams(store), branch))
    name = "HEAD" if base in ("HEAD", "@") else branch_of(store, base)
    if name is None and base:
        raise errors.RevisionNotFoundError(f"no ref {base!r} with a reflog", revision=text)
    return refs.reflog.value_at(store.refs, name or "HEAD", inner, store.clock.now(), text)


def _step(store: Store, oid: ObjectId, suffix: str, text: str) -> ObjectId:
    if suffix.startswith("^{"):
        kind = suffix[2:-1]
        if kind == "commit":
            return _peel(store, oid, text)
        raise errors.InvalidInputError(f"not a revision: {text[:80]!r}", text=text)
    if suffix.startswith("@{"):
        raise errors.InvalidInputError(f"only a ref has a reflog: {text[:80]!r}", text=text)
    number = ident.count_of(suffix[1:]) if len(suffix) > 1 else 1
    oid = _peel(store, oid, text)
    if suffix[0] == "~":
        oid, left = commits_of(store).ancestor(oid, number)
        return _parent(store, oid, 1, text) if left else oid
    return oid if number == 0 else _parent(store, oid, number, text)


def _parent(store: Store, oid: ObjectId, number: int, text: str) -> ObjectId:
    parents = objects.commit.parents_of(store.objects.read(oid))
    if number > len(parents):
        raise errors.RevisionNotFoundError(
            f"{text[:120]}: commit {oid.short()} has "
            f"{len(parents) or 'no'} parent{'' if len(parents) == 1 else 's'}",
            revision=text,
        )
    return parents[number - 1]


def _peel(
    store: Store, oid: ObjectId, text: str, commits: commit_table.commits.Commits | None = None
) -> ObjectId:
    if commits is not None and commits.is_recent(oid):
        return oid
    data = store.objects.read(oid)
    for _ in range(64):
        kind = kind_of(data)
        if kind == COMMIT:
            return oid
        if kind != TAG:
            break
        oid = objects.commit.Tag.decode(data).target
        data = store.objects.read(oid)
    article = "content" if kind_of(data) == BLOB else f"a {kind_of(data)}"
    raise errors.RevisionNotFoundError(f"{text[:120]} is {article}, not a commit", revision=text)


def reach(store: Store, text: str, commits: Commits | None = None) -> Ends:
    """Return (starts, excluded commits) of `A`, `^A`, `A..B` or `A...B`.

    Args:
        store: the store.
        text: the revision or range.
        commits: as in `resolve_commit`.

    Raises:
        RevisionNotFoundError, AmbiguousRevisionError, InvalidInputError: as in `resolve`.
    """
    if text.startswith("^"):
        return [], [resolve_commit(store, text[1:], commits)]
    selected = resolve_range(store, text, commits)
    hidden = list(selected.exclude)
    if selected.symmetric:
        hidden += (commits or commits_of(store)).merge_bases(*selected.include)
    return list(selected.include), hidden


def reach_of_several(
    store: Store, revisions: Iterable[str | ObjectId], commits: Commits | None = None
) -> Ends:
    """Return (starts, excluded commits) of several revisions and ranges.

    Raises as `reach`.
    """
    starts: list[ObjectId] = []
    hidden: list[ObjectId] = []
    for each in revisions:
        if isinstance(each, ObjectId):
            starts.append(each)
        else:
            included, excluded = reach(store, each, commits)
            starts += included
            hidden += excluded
    return list(dict.fromkeys(starts)), hidden


def tips_of_refs(store: Store, without: tuple[str, ...] = ()) -> list[ObjectId]:
    """Return all tips of all refs, except refs that start with one of `without`."""
    return [
        tip
        for name, tips in store.refs.iterate_tips()
        if not name.startswith(without)
        for tip in tips
    ]


def all_tips(store: Store, without: tuple[str, ...] = ()) -> list[ObjectId]:
    """Return the tips of all refs and a detached HEAD, without duplicates."""
    tips = tips_of_refs(store, without)
    head = store.refs.head()
    if head.ref is None and head.oid is not None:
        tips.append(head.oid)
    return list(dict.fromkeys(tips))


def all_commits(store: Store, without: tuple[str, ...] = ()) -> list[ObjectId]:
    """Return the commits that `all_tips` point to, peeling tags."""
    return commits_among(store, all_tips(store, without))


def commits_among(
    store: Store, tips: Iterable[ObjectId], commits: Commits | None = None
) -> list[ObjectId]:
    """Return the commits that tips point to; `commits` is as in `resolve_commit`."""
    result: list[ObjectId] = []
    for tip in tips:
        try:
            result.append(resolve_commit(store, tip, commits))
        except errors.RevisionNotFoundError:
            continue
    return list(dict.fromkeys(result))


def name_of(what: Revision | Address, argument: str = "revision") -> str:
    """Return the text that names a commit or a message; text names itself.

    Raises:
        InvalidInputError: it names neither; the error names the argument.
    """
    if isinstance(what, str):
        return what
    if isinstance(what, tuple):
        return as_address(what).hex
    oid = getattr(what, "oid", what)
    if not isinstance(oid, ObjectId):
        raise errors.InvalidInputError(
            f"{argument}: a commit is named by text, its id, or a value with `oid`,"
            f" not by {type(what).__name__}",
            argument=argument,
        )
    return str(oid)
