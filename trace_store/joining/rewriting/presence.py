"""What of a line another line has already, so that a rebase onto that does not bring it a second time.

Rule: only the links of commits say what is a copy. A commit that is there is left out as a whole, with what it changes;
of others single messages may be there, where both lines have worded them alike at some time.
"""

from __future__ import annotations

from functools import partial

from trace_store import context
from trace_store.context.ends import targets_of
from trace_store.context.pairs import callers
from trace_store.joining.lineage import Sources, kin, picked_pairs, squashed_tips
from trace_store.objects.commit import Commit, read_commit
from trace_store.objects.origins import origins_of
from trace_store.oid import ObjectId
from trace_store.revision import commits_of, created_by
from trace_store.values import field, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence, Set

    from trace_store.context.folding import Entry, Fold
    from trace_store.joining.lineage import Picked
    from trace_store.store import Store

    Address = tuple[bytes, int]


@value
class Presence:
    """What of a line another has already.

    Attributes:
        commits: for each commit that is there, itself, made anew, copied or squashed: which it is there, and the
            number at which its messages begin in that.
        messages: for messages of other commits what is the same there.
    """

    commits: dict[ObjectId, tuple[ObjectId, int]] = field(default_factory=dict)
    messages: dict[Address, Address] = field(default_factory=dict)


def find_presence(
    store: Store, commits: Sequence[ObjectId], tip: ObjectId, other: ObjectId
) -> Presence:
    """Return what of a line another has already.

    Args:
        store: the repository.
        commits: those of the line that is asked about, oldest first.
        tip: where that line ends.
        other: where the other ends; what both have in their past is not looked at.
    """
    line = list(commits_of(store).topological([other], [tip]))
    if not line:
        return Presence()
    there: dict[str, tuple[ObjectId, int]] = {}
    for oid in line:
        there[str(oid)] = (oid, 0)
        for _, name, first in origins_of(store.objects.read(oid)):
            there.setdefault(name, (oid, first))
    found: dict[ObjectId, tuple[ObjectId, int]] = {}
    for oid in commits:
        data = store.objects.read(oid)
        origins = origins_of(data)
        if str(oid) in there:
            found[oid] = there[str(oid)]
        elif not any(first for _, _, first in origins):
            names = [name for _, name, _ in origins if name in there]
            # Of what was squashed together some may have brought no message: those are not what it is a copy of.
            count = created_by(Commit.decode(data)) if names else 0
            for to, first in (there[name] for name in names):
                if created_by(read_commit(to, store.objects.read)) >= first + count:
                    found[oid] = to, first
                    break
    sources = Sources(store, other, partial(kin, store, commits, tip))
    copies: dict[Address, Address] = {}
    picked: list[Picked] = []
    for oid in reversed(line):
        for address, origins_there in sources.names(oid).items():
            copies.update((origin, address) for origin in origins_there)
        picked += sources.picked(oid)
        if sources.squashed[oid]:
            left = [each for each in commits if each not in found]
            found.update(_there_as_one(store, left, oid, sources.squashed[oid]))
    rest = [oid for oid in commits if oid not in found]
    messages = _messages_there(store, (rest, tip), (line, other), copies, picked)
    return Presence({oid: found[oid] for oid in commits if oid in found}, messages)


def _there_as_one(
    store: Store, commits: Sequence[ObjectId], squash: ObjectId, squashed: Mapping[Address, int]
) -> Iterator[tuple[ObjectId, tuple[ObjectId, int]]]:
    """Yield the commits that a squash holds whole, and where their messages begin there.

    A commit that creates no message is held when all messages that it names are: their copies show what it did.
    """
    tips = squashed_tips(store, store.objects.read(squash))
    table = commits_of(store)
    for oid in commits:
        if not any(table.is_ancestor(oid, tip) for tip in tips):
            continue
        commit = read_commit(oid, store.objects.read)
        own = [squashed.get((oid, number)) for number in range(created_by(commit))]
        first = own[0] if own else 0
        if first is not None and own and own == [*range(first, first + len(own))]:
            yield oid, (squash, first)
        elif not own:
            named = [each for operation in commit.operations for each in targets_of(operation, oid)]
            if named and all(each in squashed for each in named):
                yield oid, (squash, 0)


def _messages_there(
    store: Store,
    mine: tuple[Sequence[ObjectId], ObjectId],
    theirs: tuple[Sequence[ObjectId], ObjectId],
    copies: Mapping[Address, Address],
    picked: Sequence[Picked],
) -> dict[Address, Address]:
    """Return for messages of some commits what is the same on the other line.

    Args:
        store: the repository.
        mine: the commits, oldest first, and where their line ends.
        theirs: the commits of the other line, and where that ends.
        copies: for what those were made from, their own messages.
        picked: what those copied alone.
    """
    (commits, tip), (line, other) = mine, theirs
    own, new = {*commits}, {*line}
    pairs: list[tuple[Address, Address]] = []
    sources = Sources(store, tip, partial(kin, store, line, other))
    mine_picked: list[Picked] = []
    for oid in commits:
        names = sources.names(oid)
        mine_picked += (each for each in sources.picked(oid) if ObjectId(each[0][0]) in new)
        for number in range(created_by(read_commit(oid, store.objects.read))):
            address = oid, number
            for name in (address, *names.get(address, ())):
                if name in copies:
                    pairs.append((address, copies[name]))
                elif ObjectId(name[0]) in new:
                    pairs.append((address, name))
    picked = [each for each in picked if ObjectId(each[0][0]) in own]
    if not (pairs or picked or mine_picked):
        return {}  # as nearly always, and no context is folded

    def fold(oid: ObjectId) -> Fold:
        return context.fold(oid, lambda each: read_commit(each, store.objects.read))

    ours, yours = fold(tip), fold(other)
    pairs += picked_pairs(ours, picked)
    pairs += ((copy, origin) for origin, copy in picked_pairs(yours, mine_picked))
    found: dict[Address, Address] = {}
    for here, there in pairs:
        if here not in ours or there not in yours:
            continue
        is_better = here not in found or not yours.entry(found[here]).visible
        if is_better and _is_alike(ours.entry(here), yours.entry(there)):
            found[here] = there
    _drop_halves(found, ours, {here for here, _ in pairs}, own)
    return found


def _drop_halves(
    found: dict[Address, Address], ours: Fold, known: Set[Address], own: Set[ObjectId]
) -> None:
    """Leave out messages of exchanges of which the other half is there in another wording, or is not.

    A call whose result is not there yet is one without it.

    Args:
        found: what is there; it is taken from.
        ours: the context of the line that is asked about.
        known: the messages that are there, in whatever wording.
        own: the commits that are asked about.
    """
    pairs = [
        (ours.entries[call].address, ours.entries[result].address)
        for (result, _), call in callers(ours.entries).items()
    ]
    pairs = [pair for pair in pairs if {ObjectId(oid) for oid, _ in pair} <= own]
    while True:
        half = {
            (call, result)
            for call, result in pairs
            if (result in found and call not in found)
            or (call in found and result not in found and result in known)
        }
        if not half:
            return
        for address in {address for pair in half for address in pair}:
            found.pop(address, None)


def _is_alike(one: Entry, other: Entry) -> bool:
    """Tell whether two messages have, or had, a wording in common."""
    wordings = [[*each.parts] for each in other.versions]
    same = any([*each.parts] in wordings for each in one.versions)
    return same and one.message["role"] == other.message["role"]
