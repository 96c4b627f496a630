"""Revisions: text that names an object, a commit, a range or a message.

    HEAD  @            what is checked out               main~2  HEAD^2    ancestors, by first parents or by parent
    main  v1           branch, tag, or any ref           main@{1}  @{2}    where a branch was, n moves ago
    ab12cd             id, or at least 4 digits of it    main@{TIME}       where it was at a time
    -  @{-1}           the branch that was left last     A..B  A...B       ranges
    @{u}  main@{u}     where a branch's upstream stands  (also `upstream`)
    ORIG_HEAD          where HEAD stood before it was last taken elsewhere, by a reset or the like
    ab12cd.0  HEAD.2   message n that a commit adds, wherever it was carried since
    062a8bdd           the branch of the session with this id, or whose id alone begins so; also codex/062a8bdd

TIME is ISO 8601 (UTC when it names no zone), `now`, `yesterday`, or like `2 hours ago` (also `2.hours.ago`).

Rule: reads, and changes nothing. Names of refs win over abbreviated ids of objects, and these over ids of sessions.
"""

from __future__ import annotations

from trace_store import commit_table, errors, ident, objects, refs
from trace_store.objects.address import BIRTH_BYTES, Address, not_an_address
from trace_store.objects.codec import BLOB, COMMIT, TAG, kind_of
from trace_store.oid import HEX_CHARACTERS, OID_BYTES, ObjectId, is_full_id, is_prefix
from trace_store.ref_names import is_ref_name
from trace_store.refs.names import ORIGINAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from trace_store.commit_table.commits import Commits
    from trace_store.store.handle import Store

    Ends = tuple[list[ObjectId], list[ObjectId]]


HEADS = "refs/heads/"
TAGS = "refs/tags/"
SESSIONS = HEADS + "sessions/"
"""Where each session has its branch, `<format>/<id>`."""
_PLACES = ("", "refs/", TAGS, HEADS, "refs/checkpoints/", "refs/trash/")


class Range:
    """What `A..B` or `A...B` names.

    Attributes:
        include: commits whose history is meant.
        exclude: commits whose history is taken out.
    """

    __slots__ = ("exclude", "include", "symmetric")

    def __init__(
        self, include: list[ObjectId], exclude: list[ObjectId], *, symmetric: bool = False
    ) -> None:
        self.include = include
        self.exclude = exclude
        self.symmetric = symmetric


def commits_of(store: Store) -> commit_table.commits.Commits:
    """Return what answers questions about the commits of a store."""
    if not store.local:
        return commit_table.commits.Commits(store.objects)
    path = store.layout.commit_table_file
    table = commit_table.table.CommitTable(store.disk, path, store.config.store_id, store.objects)
    return commit_table.commits.Commits(store.objects, table)


def resolve(store: Store, text: str) -> ObjectId:
    """Return the id of the object that a revision names.

    Raises:
        RevisionNotFoundError: it names nothing here, or a message; `.address` holds that then, as it was typed.
        UnbornBranchError: it starts from HEAD, which has no commit yet.
        AmbiguousRevisionError: several ids begin like this; `.candidates` holds them.
        InvalidInputError: it cannot be a revision at all.
    """
    if (whole := _whole(store, text)) is not None:
        return whole
    try:
        return _resolved(store, text)
    except (errors.RevisionNotFoundError, errors.InvalidInputError):
        _refuse_address(store, text)
        raise


def resolve_commit(
    store: Store, revision: str | bytes, commits: commit_table.commits.Commits | None = None
) -> ObjectId:
    """Return the id of the commit that a revision names, through tags.

    With `commits`, an id among the newest of their table is not read to see that it is a commit's.

    Raises:
        As `resolve`; and RevisionNotFoundError when it names an object of another kind.
    """
    if isinstance(revision, bytes):
        return _peel(store, ObjectId(revision), revision.hex(), commits)
    oid = _whole(store, revision)
    if oid is None and is_prefix(revision) and branch_of(store, revision) is None:
        oid = _id(store, revision, commits=True)
    return _peel(store, oid or resolve(store, revision), revision, commits)


def resolve_range(
    store: Store, text: str, commits: commit_table.commits.Commits | None = None
) -> Range:
    """Return what a range names; a plain revision is all of its history. An empty side is HEAD.

    Raises:
        As `resolve_commit`, which also says what `commits` is for.
    """
    symmetric = "..." in text
    left, dots, right = text.partition("..." if symmetric else "..")
    if not dots:
        return Range([resolve_commit(store, text, commits)], [])
    first, last = (resolve_commit(store, side or "HEAD", commits) for side in (left, right))
    return Range([first, last], [], symmetric=True) if symmetric else Range([last], [first])


def resolve_address(store: Store, text: str) -> Address:
    """Return the message that `revision.n` names: the n-th that the commit adds, from 0, by its own address.

    The commit in which a message was born may be gone; then the address is that of a message which a branch carries.

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
        if (carried := _carried(store, revision, number)) is None:
            raise
        return carried
    return _added(store, commit, number)


def require_message(store: Store, address: Address) -> None:
    """Return when a message has an address, in whatever context; raises as `resolve_address`."""
    resolve_address(store, address.hex)


def as_address(given: Any) -> Address:
    """Return an address of a message, or that of the message which a commit adds as the n-th, given its whole id.

    Raises:
        InvalidInputError: it is none.
    """
    if isinstance(given, tuple) and len(given) == 2:
        birth, number = given
        is_birth = isinstance(birth, bytes) and len(birth) in (BIRTH_BYTES, OID_BYTES)
        if is_birth and isinstance(number, int) and number >= 0:
            return Address.of(birth, number)
    raise not_an_address(given)


def _added(store: Store, commit: ObjectId, number: int) -> Address:
    made = objects.commit.read_commit(commit, store.objects.read)
    for at, (address, _) in enumerate(objects.operations.added_messages(made, commit)):
        if at == number:
            return address
    count = objects.operations.added_by(made)
    raise errors.MessageNotFoundError(
        f"commit {commit.short()} adds {count} message{'' if count == 1 else 's'}, "
        f"none numbered {number}",
        address=Address.of(commit, number),
    )


def _carried(store: Store, prefix: str, number: int) -> Address | None:
    """Return the message on a branch whose birth begins so, though the commit that it was born in is not here."""
    prefix = prefix[: 2 * BIRTH_BYTES]
    if not is_prefix(prefix):
        return None
    head = store.refs.head().oid
    pending = [*(tip for _, tip in store.refs.iterate(HEADS)), *([head] if head else [])]
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
    """Return the full name of the ref that a revision starts from, or None: as `ref_of`, or a session's branch.

    Raises:
        AmbiguousRevisionError: several sessions have this id, or ids that begin like this; `.candidates` holds their
            branches.
    """
    ref = ref_of(store, name)
    if ref is not None or name in ("HEAD", "@") or not name:
        return ref
    if is_prefix(name) and store.objects.resolve_prefix(name):
        return None
    wanted = name.removeprefix("sessions/")
    depth = SESSIONS.count("/") + 1
    called: list[str] = []
    begin: list[str] = []
    for full, _ in store.refs.iterate(SESSIONS):
        path = full.removeprefix(SESSIONS)
        session = path if "/" in wanted else path.partition("/")[2]
        if full.count("/") == depth and session.startswith(wanted):
            begin.append(full)
            if session == wanted:
                called.append(full)  # programs may give the same id, or one the other's
    found = called or begin
    if len(found) > 1:
        candidates = [full.removeprefix(HEADS) for full in found]
        verb = "are called" if called else "begin with"
        raise errors.AmbiguousRevisionError(
            f"several sessions {verb} {name[:80]}", revision=name, candidates=candidates
        )
    return found[0] if found else None


def upstreams(store: Store) -> dict[str, str]:
    """Return the upstream of each branch that has one, both by their full names."""
    return (
        refs.upstreams.read_upstreams(store.disk, store.layout.upstreams_file)
        if store.local
        else {}
    )


def parse_moment(text: str, store: Store) -> int | None:
    """Return the milliseconds of a time as people write it, or None when it is not one."""
    return ident.parse_moment(text, store.clock.now())


def newest_not_after(store: Store, start: ObjectId, moment: int) -> ObjectId | None:
    """Return the newest commit along first parents that is not younger than a time, or None."""
    oid: ObjectId | None = start
    while oid is not None:
        commit = objects.commit.read_commit(oid, store.objects.read)
        if commit.time <= moment:
            return oid
        oid = commit.parents[0] if commit.parents else None
    return None


def _resolved(store: Store, text: str) -> ObjectId:
    base, suffixes = _split(text)
    oid = _base(store, base, suffixes, text)
    for suffix in suffixes:
        oid = _step(store, oid, suffix, text)
    return oid


def _refuse_address(store: Store, text: str) -> None:
    """Raise when what is no revision is the address of a message that is here."""
    revision, _, digits = text.rpartition(".")
    if not (revision and ident.is_count(digits)):
        return
    try:
        commit = _peel(store, _resolved(store, revision), revision)
        _added(store, commit, ident.count_of(digits))
    except (errors.NotFoundError, errors.InvalidInputError):
        return
    raise errors.RevisionNotFoundError(
        f"{text[:120]} names a message, and a commit is needed", revision=text, address=text
    )


def _whole(store: Store, text: str) -> ObjectId | None:
    """Return the id that a text is, of an object that is here; it means that, whatever else is called so."""
    if not is_full_id(text):
        return None
    oid = ObjectId.parse(text)
    try:  # what was pruned is still to be had for a while
        return oid if store.objects.contains(oid) or store.objects.read(oid) else None
    except (errors.NotFoundError, errors.FormatError):
        return None


def _split(text: str) -> tuple[str, list[str]]:
    """Return the base and the suffixes `~n`, `^n`, `@{…}` of a revision."""
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


def _base(store: Store, base: str, suffixes: list[str], text: str) -> ObjectId:
    """Return what a revision starts from; takes a leading `@{…}` from the suffixes."""
    if base == "-":
        base, suffixes[:0] = "", ["@{-1}"]
    if suffixes and suffixes[0].startswith("@{"):
        return _moved(store, base, suffixes.pop(0)[2:-1], text)
    if base in ("HEAD", "@"):
        oid = store.refs.head().oid
        if oid is None:
            branches = tuple(name for name, _ in store.refs.iterate("refs/heads/"))
            raise errors.UnbornBranchError(
                f"{base} has no commit yet", revision=text, branches=branches
            )
        return oid
    if base == ORIGINAL:
        oid = store.refs.original()
        if oid is None:
            raise errors.RevisionNotFoundError("nothing has set ORIG_HEAD yet", revision=text)
        return oid
    ref = branch_of(store, base) if base else None
    if ref is not None and not (len(base) == HEX_CHARACTERS and is_prefix(base)):
        oid = store.refs.read(ref)
        if oid is not None:
            return oid
    if is_prefix(base):
        return _id(store, base)
    raise errors.RevisionNotFoundError(f"no revision {text[:120]!r}", revision=text)


def _id(store: Store, prefix: str, *, commits: bool = False) -> ObjectId:
    found = store.objects.resolve_prefix(prefix)
    if commits and len(found) > 1:
        kinds = [(oid, kind_of(store.objects.read(oid))) for oid in found]
        found = [oid for oid, kind in kinds if kind in (COMMIT, TAG)] or found
    if not found:
        raise errors.RevisionNotFoundError(f"no object begins with {prefix}", revision=prefix)
    if len(found) > 1:
        raise errors.AmbiguousRevisionError(
            f"several objects begin with {prefix}", revision=prefix, candidates=found
        )
    return found[0]


def _moved(store: Store, base: str, inner: str, text: str) -> ObjectId:
    """Return `base@{inner}`: n moves ago, at a time, or `@{-n}` the n-th branch left."""
    if inner.startswith("-") and ident.is_count(inner[1:]) and not base:
        return resolve(
            store, refs.reflog_query.branch_left(store.refs, ident.count_of(inner[1:]), text)
        )
    if inner.lower() in ("u", "upstream"):
        branch = branch_of(store, base)
        if branch is None and base not in ("", "HEAD", "@"):
            raise errors.RevisionNotFoundError(f"no branch {base[:80]!r}", revision=text)
        return resolve(store, refs.upstreams.upstream_in(upstreams(store), branch))
    name = "HEAD" if base in ("HEAD", "@") else branch_of(store, base)
    if name is None and base:
        raise errors.RevisionNotFoundError(f"no ref {base!r} to look back on", revision=text)
    return refs.reflog_query.stood_at(store.refs, name or "HEAD", inner, store.clock.now(), text)


def _step(store: Store, oid: ObjectId, suffix: str, text: str) -> ObjectId:
    if suffix.startswith("^{"):
        kind = suffix[2:-1]
        if kind == "commit":
            return _peel(store, oid, text)
        raise errors.InvalidInputError(f"not a revision: {text[:80]!r}", text=text)
    if suffix.startswith("@{"):
        raise errors.InvalidInputError(
            f"only a ref has a log to look back on: {text[:80]!r}", text=text
        )
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
    """Return the commits that `A`, `^A`, `A..B` or `A...B` starts from, and those whose past it leaves out.

    Args:
        store: where the commits are.
        text: as it is typed.
        commits: as in `revision.resolve_commit`.

    Raises:
        RevisionNotFoundError, AmbiguousRevisionError, InvalidInputError: as in `trace_store.revision`.
    """
    if text.startswith("^"):
        return [], [resolve_commit(store, text[1:], commits)]
    found = resolve_range(store, text, commits)
    hidden = list(found.exclude)
    if found.symmetric:
        hidden += (commits or commits_of(store)).merge_bases(*found.include)
    return list(found.include), hidden


def reach_of_several(
    store: Store, revisions: Iterable[str | ObjectId], commits: Commits | None = None
) -> Ends:
    """Return what several revisions and ranges start from and leave out together; raises as `reach`."""
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
    """Return every tip of every ref but those whose names begin with one of `without`."""
    return [
        tip
        for name, tips in store.refs.iterate_tips()
        if not name.startswith(without)
        for tip in tips
    ]


def all_tips(store: Store, without: tuple[str, ...] = ()) -> list[ObjectId]:
    """Return what `tips_of_refs` does, each once, and HEAD when it is detached."""
    found = tips_of_refs(store, without)
    head = store.refs.head()
    if head.ref is None and head.oid is not None:
        found.append(head.oid)
    return list(dict.fromkeys(found))


def all_commits(store: Store, without: tuple[str, ...] = ()) -> list[ObjectId]:
    """Return the commits that `all_tips` stand for, through tags; a ref may stand for any object."""
    return commits_among(store, all_tips(store, without))


def commits_among(
    store: Store, tips: Iterable[ObjectId], commits: Commits | None = None
) -> list[ObjectId]:
    """Return the commits that tips of refs stand for; `commits` is as in `revision.resolve_commit`."""
    found: list[ObjectId] = []
    for tip in tips:
        try:
            found.append(resolve_commit(store, tip, commits))
        except errors.RevisionNotFoundError:
            continue
    return list(dict.fromkeys(found))
