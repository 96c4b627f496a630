"""Purging: content is removed for good, everywhere in the repository, and a tombstone tells that it was.

Rule: first the tombstones are durable; from then on nobody is given the bytes, and no writer takes them. Only then do
the bytes go: out of the journals by a seal that leaves them out, out of packs, which are written anew without them, and
with loose files and whatever is derived. So an interruption leaves content that is either readable or told to be
purged, and purging again goes on where it stopped. Nothing else is lost: what stays is durable elsewhere before a file
goes.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.frozen import replace, value
from trace_store.maintenance.holders import Holders, Survey
from trace_store.maintenance.lock import OperationLock
from trace_store.maintenance.pack_rewrite import packs_holding
from trace_store.maintenance.purge_files import Erasing
from trace_store.maintenance.rewrite_history import Reissued, reissue
from trace_store.maintenance.seal import seal
from trace_store.maintenance.second_copies import put_back
from trace_store.maintenance.verify_purged import Absence, Needles, search
from trace_store.objects.codec import BLOB, blob_content, chunks_of, is_content, kind_of, links
from trace_store.objects.content import bytes_of
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.fingerprints import MAXIMUM_FORMS, SALT_BYTES, Fingerprint
from trace_store.odb.fingerprints import find as find_text
from trace_store.odb.tombstones import Tombstone, check_reason
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trace_store.store.handle import Store

MAXIMUM_ROUNDS = 3
"""How often it is begun again when somebody brings the bytes back meanwhile."""
COMMON_BYTES = 16
"""Shorter content, such as "yes", is said again: nobody could, once it was purged by its id."""
EASILY_GUESSED_BYTES = 64
"""Unsalted content below it may be found by trying: its id, which stays, confirms a guess."""


@value
class PurgePlan:
    """What a purge would remove.

    Attributes:
        objects: the blobs, and lists of chunks, that go; sorted.
        sizes: of their content, in bytes, by id.
        guessable: those whose id alone confirms a guess of the content, since it is short and has no salt.
        common: those named by their ids that are so short that others will say the same, which is then refused.
        elsewhere: objects that hold the same bytes within other content, and are not purged.
        structure: commits, tags and lists whose own text holds what was searched for; only a rewrite changes these.
        holders: who holds the objects.
        packed: the names of the packs with copies, which git may have in its history.
        loose: how many have loose files.
        unreadable: objects that could not be looked into, and why.
        texts: what must be nowhere afterwards.
        named: the contents of the objects that were named by their ids.
        contents: of the objects, which may stand within others afterwards.
    """

    objects: tuple[ObjectId, ...]
    sizes: dict[ObjectId, int]
    guessable: tuple[ObjectId, ...]
    common: tuple[ObjectId, ...]
    elsewhere: tuple[ObjectId, ...]
    structure: tuple[ObjectId, ...]
    holders: Holders
    packed: tuple[str, ...]
    loose: int
    unreadable: dict[ObjectId, str]
    texts: Needles
    named: Needles
    contents: Needles


@value
class PurgeReport:
    """What a purge did.

    Attributes:
        plan: what was to go.
        tombstones: how many were made.
        kept_out: whether other content that holds what was purged is refused from now on.
        packs: how many packs were written anew.
        damaged: the names of packs that cannot be read, and so may hold the bytes still.
        files: how many other files were removed or changed.
        left: files that hold the bytes still, and why.
        absence: what a search of all files found, if it was asked for.
    """

    plan: PurgePlan
    tombstones: int
    kept_out: bool
    packs: int
    damaged: tuple[str, ...]
    files: int
    left: tuple[tuple[str, str], ...]
    absence: Absence | None


def plan_purge(
    store: Store,
    oids: Iterable[ObjectId] = (),
    texts: Iterable[str] = (),
    *,
    again: bool = False,
    progress: Callable[[int], None] | None = None,
) -> PurgePlan:
    """Return what a purge of some objects, and of all that hold some texts, would remove.

    Args:
        store: where.
        oids: blobs, or lists of chunks.
        texts: every blob that holds one of them goes, in whichever spelling.
        again: whether content goes too that holds a text which was purged before, and came with a pack of others.
        progress: told how many objects were gone through.

    Raises:
        ObjectNotFoundError: an object is not here, and was not purged either.
        InvalidInputError: an object is not content, or a text is too short to be searched for.
    """
    database = _database(store)
    database.refresh()
    asked = Needles()
    for number, text in enumerate(texts, 1):
        if not asked.add(f"text {number}", bytes_of(text)):
            raise errors.InvalidInputError("the text to purge is too short to be searched for")
    named = _named(database, oids)
    chosen: dict[bytes, bytes] = {}
    chosen.update(named.items())
    survey = Survey()
    structure: list[ObjectId] = []
    wanted = Needles(
        (oid.hex(), blob_content(d)) for oid, d in chosen.items() if kind_of(d) == BLOB
    )
    elsewhere: list[ObjectId] = []
    chunked: list[tuple[ObjectId, bytes]] = [
        (ObjectId(o), d) for o, d in chosen.items() if chunks_of(d)
    ]
    for count, (oid, kind, data) in enumerate(survey.objects(store), 1):
        if progress is not None:
            progress(count)
        if chunks_of(data) and _holds(store, data, asked):
            chunked.append((oid, data))
        elif (asked and asked.find(data)) or (again and find_text(data, database.purged_texts)):
            if kind == BLOB:
                chosen[oid] = data
            else:
                structure.append(oid)
        elif wanted and oid not in chosen and wanted.find(data):
            elsewhere.append(oid)
    for oid, data in chunked:
        chosen[oid] = data
        for chunk in links(data):
            if chunk not in database.purged:
                chosen[chunk] = database.read(chunk)
    purged = tuple(sorted(map(ObjectId, chosen)))
    contents = {oid: data for oid, data in chosen.items() if kind_of(data) == BLOB}
    return PurgePlan(
        objects=purged,
        sizes={ObjectId(oid): len(blob_content(data)) for oid, data in contents.items()},
        guessable=tuple(sorted(ObjectId(o) for o, data in contents.items() if is_guessable(data))),
        common=tuple(oid for oid, data in named.items() if _is_common(data)),
        elsewhere=tuple(oid for oid in elsewhere if oid not in chosen),
        structure=tuple(structure),
        holders=survey.holders(store, frozenset(chosen)),
        packed=tuple(packs_holding(store, frozenset(purged))) if purged else (),
        loose=sum(database.loose.contains(oid) for oid in purged),
        unreadable=survey.unreadable,
        texts=asked,
        named=wanted,
        contents=Needles((oid.hex(), blob_content(data)) for oid, data in contents.items()),
    )


def purge(
    store: Store,
    plan: PurgePlan,
    *,
    why: str = "",
    by: str = "",
    dry_run: bool = False,
    verify: bool = False,
    force: bool = False,
    keep_out: bool = True,
) -> PurgeReport:
    """Remove what a plan names, and whatever else of purged objects is here, and return what was done.

    Args:
        store: where.
        plan: as `plan_purge` returned it.
        why: the reason, one line, which everybody may read.
        by: who purges.
        dry_run: whether nothing is to be written.
        verify: whether to search all files afterwards.
        force: whether content goes that is so short that others will say the same.
        keep_out: whether fingerprints are kept of the texts, so that no other content brings them in again.

    Raises:
        InvalidInputError: the reason is no line, or short content goes only with `force`.
        LockedError: another process has been sealing or packing for a minute.
        StorageError: the disk refuses; purging again goes on.
    """
    database = _database(store)
    check_reason(why)
    if dry_run:
        return _reported(store, plan, 0, Erasing(store, plan.texts, plan.contents), verify)
    if not force:
        refuse_common(plan)
    now = store.clock.now()
    put_back(store)  # a pack of which only the second copy is left is rewritten like the others
    kept_out = keep_out and _keep_out(store, plan, now, by, why)
    made = database.tombstones.add(Tombstone(oid, now, by, why) for oid in plan.objects)
    database.refresh()
    work = Erasing(store, plan.texts, plan.contents)
    for _ in range(MAXIMUM_ROUNDS):
        store.alone(lambda: None)  # closes the journal, so every writer looks for tombstones
        seal(store)
        with OperationLock(store, "trace purge"):
            work.clean()
        database.refresh()
        if not database.returned():
            break
    return _reported(store, plan, made, work, verify, kept_out=kept_out)


def purge_and_reissue(
    store: Store, plan: PurgePlan, *, why: str = "", by: str = "", verify: bool = False
) -> tuple[PurgeReport, Reissued]:
    """Remove what a plan names, and write every commit behind it anew without it.

    No tombstone is left, since its name is the id of the content; so nothing keeps that from being stored again.
    Messages keep their addresses, which begin with ids of old commits; so a guess of something short can be confirmed.
    Commits that no ref leads to and that named it go too. Arguments and errors are those of `purge` and `reissue`.
    """
    database = _database(store)
    check_reason(why)
    issued = reissue(store, plan.objects, plan.texts, why=why, author=by)
    astray = [holder.commit for holder in plan.holders.commits if not holder.refs]
    gone = dict.fromkeys([*plan.objects, *issued.objects, *plan.structure, *astray])
    report = purge(
        store, replace(plan, objects=tuple(gone)), why=why, by=by, force=True, keep_out=False
    )
    database.tombstones.remove(gone)
    database.refresh()
    absence = None
    if verify:
        absence = search(store, database.purged | gone.keys(), plan.texts, plan.contents)
    return replace(report, plan=plan, tombstones=0, absence=absence), issued


def refuse_common(plan: PurgePlan) -> None:
    """Accept a plan that names no content so short that others will say the same.

    Raises:
        InvalidInputError: it does; the code is `common-content`.
    """
    if plan.common:
        count = len({each for holder in plan.holders.commits for each in holder.messages})
        said = "1 message says it" if count == 1 else f"{count:,} messages say it"
        raise errors.InvalidInputError(
            f"blob {plan.common[0].short()} has only {plan.sizes[plan.common[0]]} bytes: {said},"
            " and once it is purged, no message can say it again",
            code=errors.ErrorCode.COMMON_CONTENT,
            messages=count,
        )


def is_guessable(data: bytes) -> bool:
    """Tell whether the id of a blob, which a purge leaves, confirms a guess of its content."""
    return data.startswith(b"\x92") and len(blob_content(data)) < EASILY_GUESSED_BYTES


def _reported(
    store: Store,
    plan: PurgePlan,
    made: int,
    work: Erasing,
    verify: bool,
    *,
    kept_out: bool = False,
) -> PurgeReport:
    gone = _database(store).purged
    return PurgeReport(
        plan=plan,
        tombstones=made,
        kept_out=kept_out,
        packs=work.packs,
        damaged=tuple(work.damaged),
        files=work.files,
        left=tuple(work.left.items()),
        absence=search(store, gone, plan.texts, plan.contents) if verify else None,
    )


def _named(database: ObjectDatabase, oids: Iterable[ObjectId]) -> dict[ObjectId, bytes]:
    """Return content that was named by its id and not purged yet; errors as of `plan_purge`."""
    found: dict[ObjectId, bytes] = {}
    for oid in oids:
        if oid in database.purged:
            continue
        data = found[oid] = database.read(oid)
        if not is_content(data):
            raise errors.InvalidInputError(
                f"object {oid} is a {kind_of(data)}, and only content can be purged", oid=oid
            )
    return found


def _is_common(data: bytes) -> bool:
    return kind_of(data) == BLOB and len(blob_content(data)) < COMMON_BYTES


def _keep_out(store: Store, plan: PurgePlan, now: int, by: str, why: str) -> bool:
    """Keep fingerprints of the texts, or of long content that stands nowhere else; return whether that was done."""
    forms = plan.texts.forms()
    if not forms and not plan.elsewhere and not plan.guessable:
        forms = plan.named.forms()
    if not 0 < len(forms) <= MAXIMUM_FORMS:
        return False
    fingerprint = Fingerprint.of(forms, os.urandom(SALT_BYTES), now, by, why)
    _database(store).tombstones.add_text(fingerprint)
    return True


def _holds(store: Store, data: bytes, needles: Needles) -> bool:
    """Tell whether content in chunks holds what is searched for, also across the border of two chunks."""
    if not needles:
        return False
    read = store.objects.read
    content = b"".join(blob_content(read(chunk)) for chunk in links(data))
    return bool(needles.find(content))


def _database(store: Store) -> ObjectDatabase:
    if not isinstance(store.objects, ObjectDatabase):
        raise errors.InvalidInputError("a repository in memory has no files to purge")
    return store.objects
