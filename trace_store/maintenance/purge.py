"""Purge: permanent removal of content, with tombstones or a rewritten history.

Invariant: tombstones are made durable first. From then on the content is neither served nor stored. Then its bytes are
removed: from journals by a seal that omits them, from packs by a rewrite, from loose files and from derived data.
Before a file is removed, all of its other content is durable elsewhere. After an interruption, content is either
readable or marked as purged, and the purge can be repeated.

Invariant: an id in a commit, tag or list is 32 bytes and nothing else is, so one rule rewrites them all, oldest first.
All refs move in one transaction from their known values, so a concurrent move is not overwritten. `local/reissued`,
which git ignores, maps old ids to new ones. Messages keep their addresses: a rewritten commit carries the messages born
in the old one.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.oid import OID_BYTES, ObjectId, hash_object
from trace_store.contracts import RefEdit, Transaction
from trace_store.contracts.ref_names import FILES
from trace_store.disk.files import files_below, make_durable_directory, read_file, replace_file
from trace_store.disk.git import find_git
from trace_store.journal.published import stamp_of
from trace_store.maintenance import lock_owner
from trace_store.maintenance.consolidate import remove_if_possible
from trace_store.maintenance.lock import operation_lock
from trace_store.maintenance.object_scan import Holders, ObjectScan
from trace_store.maintenance.repack import packs_holding, rewrite_packs
from trace_store.maintenance.seal import seal
from trace_store.maintenance.second_copies import restore_missing
from trace_store.maintenance.verify_purged import Needles, PurgeVerification, search
from trace_store.objects.codec import (
    BLOB,
    COMMIT,
    blob_content,
    chunks_of,
    decode,
    encode,
    encode_blob,
    is_content,
    kind_of,
    links,
)
from trace_store.objects.commit import Commit
from trace_store.objects.content import bytes_of
from trace_store.objects.operations import carried_operations
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.pack import walk_objects
from trace_store.odb.pack_writer import PackWriter
from trace_store.odb.quarantine import QuarantineBatch
from trace_store.odb.reachable import reachable
from trace_store.odb.tombstones import (
    MAXIMUM_FORMS,
    SALT_BYTES,
    Fingerprint,
    Tombstone,
    check_reason,
    find_text,
)
from trace_store.store.store import Store
from trace_store.writer import Writer

REMOVED = b"[purged]"
"""Replaces the text in reflogs."""
MAXIMUM_ROUNDS = 3
"""How often to repeat if purged objects are written again meanwhile."""
COMMON_BYTES = 16
"""Shorter content, such as "yes", will occur again, and would then be refused."""
EASILY_GUESSED_BYTES = 64
"""Shorter unsalted content can be guessed, and the remaining id would confirm a correct guess."""

_NEW_IDS_FILE = "reissued"
_REWRITE_MESSAGE = "purge: history rewritten"
_DROPPED = ("source", "prompt")
_SHORTENED = ("schemas", "keep")
"""Fields from which ids are dropped: single ids, and lists of ids."""


class Eraser:
    """Removes purged content, and records what it cannot remove.

    Attributes:
        packs: number of packs rewritten.
        files: number of other files removed or changed.
        damaged: names of damaged packs, which stay.
        left: files that may still hold the bytes, with the reason.
    """

    def __init__(self, store: Store, texts: Needles, contents: Needles) -> None:
        """Prepare; search terms as in a plan."""
        self._store = store
        self._database = store.objects
        self._texts = texts
        self._contents = contents
        self._folders: set[str] = set()
        self.packs = 0
        self.files = 0
        self.damaged: list[str] = []
        self.left: dict[str, str] = {}

    def clean(self) -> None:
        """Process all files once."""
        store = self._store
        self._remove_journals()
        purged = frozenset(map(ObjectId, self._database.purged))
        done = rewrite_packs(store, packs_holding(store, purged), purged)
        self.packs += len(done.replaced)
        self.damaged = list(done.damaged)
        for oid in purged:
            if self._database.loose.contains(oid):
                self._database.loose.remove(oid)
                self._folders.add(os.path.dirname(store.layout.loose_file(oid.hex())))
                self.files += 1
        for taking in self._database.quarantine.batches():
            self._clean_taking(taking, purged)
        layout = store.layout
        # In the cache, the search indexes and the proposals hold words of messages; so do lists of sessions.
        for folder in (
            layout.index_dir,
            layout.cache_dir,
            layout.info_dir,
            os.path.join(layout.local_dir, "imports"),
        ):
            for path in files_below(store.disk, folder):
                self._remove(path)
        for path in files_below(store.disk, layout.logs_dir):
            self._clean_log(path)
        self._clean_unread_places()
        # The seal and the rewritten packs have removed files as well.
        self._folders |= {
            layout.pack_dir,
            layout.objects_dir,
            layout.journal_dir,
            layout.kept_packs_dir,
        }
        for folder in sorted(self._folders):
            if store.disk.exists(folder):  # removed folders are covered by their parent
                store.disk.sync_directory(folder)

    def _remove_journals(self) -> None:
        """Remove sealed journals without waiting for the next seal."""
        journal = self._store.journal
        with self._store.mutex:
            journal.refresh()
            covered = dict(journal.covered)
        for number, (stamp, _) in covered.items():
            path = self._store.layout.journal_file(number)
            if stamp_of(self._store.disk, path) == stamp:
                self._remove(path)
        for file in journal.files:
            if file.objects.keys() & self._database.purged:
                self.left[f"journal/{file.number}"] = "cannot be sealed"

    def _clean_taking(self, taking: QuarantineBatch, purged: frozenset[ObjectId]) -> None:
        """Remove objects from one quarantine folder."""
        disk = self._store.disk
        taking.packs.refresh()
        for name in taking.packs.names():
            packed = taking.packs.get(name)
            if packed is None or purged.isdisjoint(packed.index.in_order()):
                continue
            writer = PackWriter(disk, taking.layout)
            try:
                for _, _, objects in walk_objects(packed.pack):
                    if isinstance(objects, errors.CorruptObjectError):
                        raise objects
                    for oid, _, data in objects:
                        if oid not in purged:
                            writer.add(oid, data)
                new = writer.finish()
            except errors.FormatError:
                self.damaged.append(name)
                continue
            finally:
                writer.discard()
            if name not in new:
                self._remove(taking.layout.pack_index_file(name))
                self._remove(taking.layout.pack_file(name))
                self.packs += 1
        for oid in purged:
            if taking.loose.contains(oid):
                taking.loose.remove(oid)
                folder = os.path.dirname(taking.layout.loose_file(oid.hex()))
                self._folders |= {folder, os.path.dirname(folder)}
                self.files += 1
        taking.packs.refresh()

    def _clean_log(self, path: str) -> None:
        """Remove the text from a reflog, whose messages people write."""
        data = kept = read_file(self._store.disk, path) or b""
        for needles in (self._texts, self._contents):
            kept = needles.replace_in(kept, REMOVED)
        if kept != data:
            scratch = self._store.layout.tmp_dir
            replace_file(self._store.disk, path, kept, scratch=scratch)
            self.files += 1

    def _clean_unread_places(self) -> None:
        """Remove matching files from places without a reader.

        Tmp, second copies, lost-found.

        An unreadable file in `tmp` is unfinished and removed as well.
        """
        store = self._store
        for folder in ("tmp", "lost-found", "quarantine", os.path.join("local", "packs")):
            matches = search(
                store, self._database.purged, self._texts, self._contents, below=folder
            )
            paths = {each.path for each in matches.found}
            paths.update(path for path, _ in matches.unread if folder == "tmp")
            for path in sorted(paths):
                writer = _writer_of(os.path.basename(path))
                if writer and lock_owner.is_alive(writer):
                    self.left[path] = f"process {writer} may be writing it"
                else:
                    self._remove(os.path.join(store.layout.root, path))

    def _remove(self, path: str) -> None:
        relative = os.path.relpath(path, self._store.layout.root)
        if remove_if_possible(self._store.disk, path):
            self.files += 1
            self._folders.add(os.path.dirname(path))
            self.left.pop(relative, None)
        else:
            self.left[relative] = "in use"


def _writer_of(name: str) -> int:
    """Return the process id in a temporary file's name; 0 for this process or none."""
    match = re.match(
        r"(?:object|pack|tombstone)-(\d{1,10})-|.*\.(\d{1,10})-[0-9a-f]{12}\.tmp$", name
    )
    process = 0 if match is None else int(match[1] or match[2])
    return 0 if process == os.getpid() else process


@value
class PurgePlan:
    """What a purge would remove.

    Attributes:
        objects: sorted blobs and chunk lists to remove.
        sizes: content size in bytes, by id.
        guessable: objects whose remaining id confirms a guess, since they are short and unsalted.
        common: objects named by id whose content is so short that later messages will have it, too; refused without
            `force`.
        elsewhere: objects that contain the bytes of a named object, but are not purged.
        structure: commits, tags and lists whose own text matches; only a rewrite changes them.
        holders: the commits, messages and refs that held the objects.
        packed: names of packs with copies, which may be in git's history.
        loose: number of loose copies.
        unreadable: unreadable objects with the reason.
        reappeared: objects purged before that are here again, such as after a git merge; they are removed, too.
        texts: texts that must not remain anywhere.
        named: contents of the objects named by id.
        contents: contents of all objects to purge; copies inside other objects may remain.
        is_repeated: whether a text was purged before.
    """

    JSON = (
        "objects=listing:object,size,guessable commits=holders.commits refs=holders.refs "
        "contexts=holders.contexts packs=packed -sizes -guessable -common -unreadable "
        "-reappeared -texts -named -contents -is_repeated"
    )

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
    reappeared: tuple[ObjectId, ...]
    texts: Needles
    named: Needles
    contents: Needles
    is_repeated: bool = False

    @property
    def is_found(self) -> bool:
        """Whether an object has something to purge, or had before."""
        return bool(self.objects or self.structure or self.reappeared or self.is_repeated)

    @property
    def listing(self) -> list[tuple[ObjectId, int | None, bool]]:
        """The objects with their sizes (None for chunks), and whether their content can be guessed."""
        guessable = set(self.guessable)
        return [(oid, self.sizes.get(oid), oid in guessable) for oid in self.objects]

    def check_common(self) -> None:
        """Raise if content named by id is so short that other messages will contain it.

        Raises:
            InvalidInputError: it is; the code is `common-content`.
        """
        if self.common:
            count = len({each for holder in self.holders.commits for each in holder.messages})
            uses = "1 message has it" if count == 1 else f"{count:,} messages have it"
            raise errors.InvalidInputError(
                f"blob {self.common[0].short()} has only {self.sizes[self.common[0]]} bytes: {uses},"
                " and after the purge no message can contain it again",
                code=errors.ErrorCode.COMMON_CONTENT,
                messages=count,
            )


@value
class PurgeReport:
    """Result of a purge.

    Attributes:
        plan: the plan.
        tombstones: number of tombstones created.
        kept_out: True if content with the purged text is refused from now on.
        packs: number of packs rewritten.
        damaged: names of unreadable packs, which may still hold the bytes.
        files: number of other files removed or changed.
        left: files that still hold the bytes, with the reason.
        git_folder: path of `.trace` in the git work tree around it, whose history may have copies; "" without git.
        absence: result of the verification, if requested.
        reworded: messages that got a wording without the texts, by branch, as `history.purged_text.Rewording`.
    """

    JSON = (
        "*plan rewritten=packs -git_folder absent=absence.is_proven found=absence.found "
        "unread=absence.unread"
    )

    plan: PurgePlan
    tombstones: int
    kept_out: bool
    packs: int
    damaged: tuple[str, ...]
    files: int
    left: tuple[tuple[str, str], ...]
    git_folder: str
    absence: PurgeVerification | None
    reworded: tuple[Any, ...] = ()


def plan_purge(
    store: Store,
    oids: Iterable[ObjectId] = (),
    texts: Iterable[str | bytes] = (),
    *,
    again: bool = False,
    progress: Callable[[int], None] | None = None,
) -> PurgePlan:
    """Return what purging blobs, chunk lists and texts would remove, as `Maintenance.plan_purge` describes it."""
    database = store.objects
    database.refresh()
    text_needles, is_repeated = Needles(), False
    for number, text in enumerate(texts, 1):
        content = text if isinstance(text, bytes) else bytes_of(text)
        if not text_needles.add(f"text {number}", content):
            raise errors.InvalidInputError("the text to purge is too short")
        is_repeated = is_repeated or bool(find_text(content, database.purged_texts))
    named = _named(database, oids)
    chosen: dict[bytes, bytes] = {}
    chosen.update(named.items())
    scan = ObjectScan()
    structure: list[ObjectId] = []
    named_needles = Needles(
        (oid.hex(), blob_content(d)) for oid, d in chosen.items() if kind_of(d) == BLOB
    )
    elsewhere: list[ObjectId] = []
    chunked: list[tuple[ObjectId, bytes]] = [
        (ObjectId(o), d) for o, d in chosen.items() if chunks_of(d)
    ]
    for count, (oid, kind, data) in enumerate(scan.objects(store), 1):
        if progress is not None:
            progress(count)
        if chunks_of(data) and _holds(store, data, text_needles):
            chunked.append((oid, data))
        elif (text_needles and text_needles.find(data)) or (
            again and find_text(data, database.purged_texts)
        ):
            if kind == BLOB:
                chosen[oid] = data
            else:
                structure.append(oid)
        elif named_needles and oid not in chosen and named_needles.find(data):
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
        holders=scan.holders(store, frozenset(chosen)),
        packed=tuple(packs_holding(store, frozenset(purged))) if purged else (),
        loose=sum(database.loose.contains(oid) for oid in purged),
        unreadable=scan.unreadable,
        reappeared=tuple(database.reappeared()),
        texts=text_needles,
        named=named_needles,
        contents=Needles((oid.hex(), blob_content(data)) for oid, data in contents.items()),
        is_repeated=is_repeated,
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
    """Execute a plan, as `Maintenance.purge` describes it, and remove any other purged objects that are present.

    With `keep_out`, fingerprints of texts that were found are stored, so that new content with them is refused.
    """
    database = store.objects
    check_reason(why)
    if dry_run:
        return _report(store, plan, 0, Eraser(store, plan.texts, plan.contents), verify)
    if not force:
        plan.check_common()
    now = store.clock.now()
    restore_missing(store)  # so that packs with only a second copy left are rewritten, too
    kept_out = keep_out and plan.is_found and _keep_out(store, plan, now, by, why)
    tombstones = database.tombstones.add(Tombstone(oid, now, by, why) for oid in plan.objects)
    database.refresh()
    work = Eraser(store, plan.texts, plan.contents)
    for _ in range(MAXIMUM_ROUNDS):
        store.alone(lambda: None)  # closes the journal, so every writer rereads the tombstones
        seal(store)
        with operation_lock(store, "trace purge"):
            work.clean()
        database.refresh()
        if not database.reappeared():
            break
    return _report(store, plan, tombstones, work, verify, kept_out=kept_out)


def without_texts(plan: PurgePlan) -> Callable[[bytes], bytes]:
    """Return a function that replaces the texts of a plan in bytes."""
    return lambda data: plan.texts.replace_in(data, REMOVED)


def is_guessable(data: bytes) -> bool:
    """Return True if the remaining id could confirm a guess of the content."""
    # A blob that begins so is an array of two: it has no salt.
    return data.startswith(b"\x92") and len(blob_content(data)) < EASILY_GUESSED_BYTES


def _report(
    store: Store,
    plan: PurgePlan,
    tombstones: int,
    work: Eraser,
    verify: bool,
    *,
    kept_out: bool = False,
) -> PurgeReport:
    purged = store.objects.purged
    return PurgeReport(
        plan=plan,
        tombstones=tombstones,
        kept_out=kept_out,
        packs=work.packs,
        damaged=tuple(work.damaged),
        files=work.files,
        left=tuple(work.left.items()),
        git_folder=_git_folder(store),
        absence=search(store, purged, plan.texts, plan.contents) if verify else None,
    )


def _git_folder(store: Store) -> str:
    root = store.layout.root
    git = find_git(store.disk, root)
    return os.path.relpath(root, os.path.dirname(git)).replace(os.sep, "/") if git else ""


def _named(database: ObjectDatabase, oids: Iterable[ObjectId]) -> dict[ObjectId, bytes]:
    """Return content named by id that is not purged yet; errors as in `plan_purge`."""
    named: dict[ObjectId, bytes] = {}
    for oid in oids:
        if oid in database.purged:
            continue
        data = named[oid] = database.read(oid)
        if not is_content(data):
            raise errors.InvalidInputError(
                f"object {oid} is a {kind_of(data)}; only content can be purged", oid=oid
            )
    return named


def _is_common(data: bytes) -> bool:
    return kind_of(data) == BLOB and len(blob_content(data)) < COMMON_BYTES


def _keep_out(store: Store, plan: PurgePlan, now: int, by: str, why: str) -> bool:
    """Store fingerprints of the texts, or of long unique content; return True if stored."""
    forms = plan.texts.forms()
    if not forms and not plan.elsewhere and not plan.guessable:
        forms = plan.named.forms()
    if not 0 < len(forms) <= MAXIMUM_FORMS:
        return False
    fingerprint = Fingerprint.of(forms, os.urandom(SALT_BYTES), now, by, why)
    store.objects.tombstones.add_text(fingerprint)
    return True


def _holds(store: Store, data: bytes, needles: Needles) -> bool:
    """Return True if chunked content contains a search term, also across chunks."""
    if not needles:
        return False
    read = store.objects.read
    content = b"".join(blob_content(read(chunk)) for chunk in links(data))
    return bool(needles.find(content))


@value
class RewrittenHistory:
    """Rewritten history.

    Attributes:
        objects: new id of each rewritten commit, tag and list.
        refs: sorted full names of the refs moved.
    """

    objects: dict[ObjectId, ObjectId]
    refs: tuple[str, ...]


def rewrite_history(
    writer: Writer, content: Collection[ObjectId], texts: Needles, *, why: str
) -> RewrittenHistory:
    """Rewrite everything that reaches some content, and move the refs.

    Args:
        writer: the repository.
        content: blobs and chunk lists whose ids must go.
        texts: also removed from the text of commits, tags and lists.
        why: the reason, part of the placeholder.

    Raises:
        StateError: an affected ref has several tips, or HEAD is detached.
        RefChangedError: another process moves a ref; nothing is changed.
        StorageError: the disk refuses; nothing is changed.
    """
    store = writer.store
    tips = {name: values for name, values in store.refs.iterate_tips() if values}
    rewriter = _HistoryRewriter(content, texts, f"[purged: {why}]" if why else "[purged]")
    starts = [tip for values in tips.values() for tip in values]
    for oid, data in reachable(store.objects.read, starts, absent=lambda _, __: None):
        rewriter.rewrite(oid, data)
    edits: list[RefEdit] = []
    for name, values in tips.items():
        if rewriter.new_ids.keys().isdisjoint(values):
            continue
        if len(values) > 1:
            raise errors.StateError(f"{name} has diverged; join its tips first", ref=name)
        # A source file without one of its parts cannot be restored.
        new = None if name.startswith(FILES) else rewriter.new_ids[values[0]]
        edits.append(RefEdit(name, new, values[0]))
    head = store.refs.head()
    if head.ref is None and head.oid in rewriter.new_ids:
        raise errors.StateError("HEAD is detached at a commit that must be rewritten")
    if edits:
        transaction = Transaction(list(rewriter.new.items()), edits, _REWRITE_MESSAGE)
        _save_new_ids(store, rewriter.new_ids)  # first: afterwards the old ids are unknown
        store.transact(lambda _: transaction, author=writer.author)  # nothing in them is new
    return RewrittenHistory(dict(rewriter.new_ids), tuple(sorted(edit.name for edit in edits)))


class _HistoryRewriter:
    """Rewriter of objects, oldest first."""

    def __init__(self, content: Collection[ObjectId], texts: Needles, text: str) -> None:
        self._content = frozenset(content)
        self._texts = texts
        self.new_ids: dict[ObjectId, ObjectId] = {}
        self.new: dict[ObjectId, bytes] = {}
        self._plain = self._put(encode_blob(text.encode()))
        self._json = encode_blob(_as_json(text))

    def rewrite(self, oid: ObjectId, data: bytes) -> None:
        """Rewrite an object if it links to removed content."""
        if oid in self._content or kind_of(data) == BLOB:
            return
        fields = decode(data)
        changed = self._rewrite_value(fields)
        if changed == fields:
            return
        if kind_of(data) == COMMIT:
            commit = Commit.decode(data)
            commit.operations = tuple(carried_operations(oid, commit))
            changed = self._rewrite_value(decode(commit.encode()))
        self.new_ids[oid] = self._put(encode(changed))

    def _put(self, data: bytes) -> ObjectId:
        oid = hash_object(data)
        self.new[oid] = data
        return oid

    def _rewrite_value(self, value: Any) -> Any:
        if isinstance(value, bytes) and len(value) == OID_BYTES:
            if value in self._content:
                return self._plain
            return self.new_ids.get(ObjectId(value), value)
        if isinstance(value, str) and self._texts:
            data = value.encode()
            return (
                self._texts.replace_in(data, REMOVED).decode() if self._texts.find(data) else value
            )
        if isinstance(value, dict):
            return self._part(value) if "type" in value else self._map(value)
        return (
            [self._rewrite_value(each) for each in value]
            if isinstance(value, list | tuple)
            else value
        )

    def _map(self, value: dict[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, each in value.items():
            if key in _DROPPED and each in self._content:
                continue
            if key in _SHORTENED:
                each = [oid for oid in each if oid not in self._content]
            kept[key] = self._rewrite_value(each)
        return kept

    def _part(self, part: dict[str, Any]) -> dict[str, Any]:
        """Return a message part that stays valid without its removed content."""
        removed = [k for k in ("blob", "signature", "url") if part.get(k) in self._content]
        if not removed:
            return self._map(part)
        if part["type"] == "tool_call" and part.get("format", "json") == "json":
            return self._map({**part, "blob": self._put(self._json)})
        if part["type"] in ("image", "opaque"):
            return {"blob": self._plain, "type": "text"}
        return self._map({key: each for key, each in part.items() if key != "signature"})


def _as_json(text: str) -> bytes:
    """Return placeholder arguments of a call, as JSON."""
    return json.dumps({"purged": text}, ensure_ascii=False, separators=(",", ":")).encode()


def _save_new_ids(store: Store, new_ids: dict[ObjectId, ObjectId]) -> None:
    """Add old and new ids to the file; it may contain some from a failed attempt."""
    path = os.path.join(store.layout.local_dir, _NEW_IDS_FILE)
    make_durable_directory(store.disk, store.layout.local_dir)
    before = read_file(store.disk, path) or b""
    known = set(before.splitlines(keepends=True))
    lines = [f"{old} {new}\n".encode() for old, new in new_ids.items()]
    data = before + b"".join(line for line in lines if line not in known)
    replace_file(store.disk, path, data, scratch=store.layout.tmp_dir)
