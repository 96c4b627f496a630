"""`Maintenance`, the subject `repo.maintenance`."""

from __future__ import annotations

import os
import sys

from trace_store import errors, maintenance, secrets
from trace_store.base import check
from trace_store.base.frozen import replace
from trace_store.disk.file_systems import kind_of
from trace_store.disk.files import replace_file
from trace_store.objects.content import bytes_of
from trace_store.odb.tombstones import check_reason
from trace_store.refs.rewind_guard import write_adopted
from trace_store.store.discovery import find
from trace_store.store.reflogs import log_command
from trace_store.store.revision import name_of, resolve
from trace_store.store.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeAlias

    from trace_store.base.oid import ObjectId
    from trace_store.disk.file_systems import FileSystem
    from trace_store.maintenance.adopt import AdoptReport
    from trace_store.maintenance.doctor import Diagnosis
    from trace_store.maintenance.du import StoreUsage
    from trace_store.maintenance.fsck_objects import Finding
    from trace_store.maintenance.gc import GcReport
    from trace_store.maintenance.object_scan import FileScan, SecretScan
    from trace_store.maintenance.purge import PurgePlan, PurgeReport, RewrittenHistory
    from trace_store.maintenance.repack import PackReport
    from trace_store.maintenance.repair_report import RepairReport
    from trace_store.maintenance.seal import SealReport
    from trace_store.store.revision import Revision
    from trace_store.writer import Writer

    Progress: TypeAlias = Callable[[str, int, int], None]
    Path: TypeAlias = str | os.PathLike[str]

GRACE_DAYS = 14


class Maintenance:
    """The upkeep of a repository: seal, pack, collect garbage, check, repair, purge, and search for secrets.

    What rewrites files raises LockedError if another process has been sealing or packing for a minute, and StorageError
    if the disk fails; nothing is lost then, and it can be called again.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._store = writer.store

    def seal(self, *, level: int | None = None, fully: bool = False) -> SealReport:
        """Write the journal into a pack, so that git sees all commits; `fully` also writes every ref to its file."""
        for tell in self._writer.observers.sealing:
            tell(self._writer)
        return maintenance.seal.seal(self._store, level=level, fully=fully)

    def pack(
        self,
        *,
        level: int | None = None,
        frame_bytes: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> PackReport:
        """Seal, then combine loose objects and small packs, and what was never packed.

        A pack stays while it is twice as large as all smaller ones together, so the cost depends on what is new.

        Args:
            level: how hard to compress, from 1 to 19; None is 10, and packs of another level stay as they are.
            frame_bytes: how much content is compressed together; less is read sooner and takes more space. None is
                256 KiB, and packs with frames of another size stay as they are.
            progress: called with the number of objects done, and of all.
        """
        if level is not None:
            check.integer(1, 19, level=level)
        if frame_bytes is not None:
            check.integer(1, 2**31, frame_bytes=frame_bytes)
        check.function(progress=progress)
        return maintenance.repack.pack(
            self._store, level=level, frame_bytes=frame_bytes, progress=progress
        )

    def gc(
        self,
        *,
        grace_days: float = GRACE_DAYS,
        reflog_days: int | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> GcReport:
        """Seal, pack, remove unreachable loose objects, and expire old reflog entries.

        Packed objects stay, and so do packs in the user's git index.

        Args:
            grace_days: remove only objects unreachable for this many days; they then stay in quarantine as long.
            reflog_days: the age at which reflog entries expire; None is 90 days, or 30 for unreachable commits.
            dry_run: return what would be removed, and remove nothing.
            progress: called with the step, how much of it is done, and of how much.

        Raises:
            StateError: a ref cannot be read, or its commit is not here; nothing was changed.
            FormatError: an object is damaged; nothing was changed.
        """
        check.number(0, 36_500, grace_days=grace_days)
        check.count(reflog_days=reflog_days)
        check.flag(dry_run=dry_run)
        check.function(progress=progress)
        collector = maintenance.gc.Collector(self._store, grace_days, dry_run, progress)
        return self._collected("gc", collector.gc(reflog_days), dry_run)

    def prune(
        self,
        *,
        grace_days: float = GRACE_DAYS,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> GcReport:
        """Move unreachable objects to quarantine, also from packs. Arguments and errors as in `gc`.

        Their packs are rewritten, even if they are in the user's git index.
        """
        check.number(0, 36_500, grace_days=grace_days)
        check.flag(dry_run=dry_run)
        check.function(progress=progress)
        collector = maintenance.gc.Collector(self._store, grace_days, dry_run, progress)
        return self._collected("prune", collector.prune(), dry_run)

    def _collected(self, name: str, report: GcReport, dry_run: bool) -> GcReport:
        """Log a command that removed objects; return its report."""
        if report.taken and not dry_run:
            self._log(f"{name}: {report.taken:,} objects removed")
        return report

    def _log(self, what: str) -> None:
        log_command(self._store, what, self._writer.author)

    def fsck(self) -> list[Finding]:
        """Check every object, ref and link, and return the findings, errors first."""
        return maintenance.fsck.fsck(self._store, also=[maintenance.fsck.check_derived])

    def repair(
        self,
        source: Path | None = None,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> RepairReport:
        """Recover what is damaged: the configuration, objects, packs, refs and indexes.

        What cannot be recovered goes to `lost-found`. A repository whose configuration is damaged opens with
        `Repo.open(damaged=True)`.

        Args:
            source: another copy of the repository to take objects from: its folder, or its `.trace` directory.
            dry_run: return what would be done, and write nothing.
            progress: as in `gc`.

        Raises:
            RepositoryNotFoundError: the other copy is none.
        """
        check.flag(dry_run=dry_run)
        check.function(progress=progress)
        repair = maintenance.repair_store.StoreRepair
        if source is None:
            return repair(self._store, dry_run=dry_run, progress=progress).run()
        check.path(source=source)
        named = os.fspath(source)
        with Store.open(find(named, self._writer.environment, explicit=named)) as other:
            return repair(self._store, other, dry_run=dry_run, progress=progress).run()

    @property
    def file_system(self) -> FileSystem:
        """The file system that the repository is on, and which guarantees it breaks."""
        self._store.check_local()
        return kind_of(self._store.layout.root)

    def keep_text(self, name: str, text: str) -> str:
        """Save a text in the folder of local files, replacing one of that name, and return its path.

        Raises:
            StorageError: the disk failed.
        """
        check.text(name=name, text=text)
        layout = self._store.layout
        path = os.path.join(layout.local_dir, name)
        replace_file(self._store.disk, path, bytes_of(text), scratch=layout.tmp_dir)
        return path

    def doctor(self) -> list[Diagnosis]:
        """Check file system, permissions and git settings, and return advice.

        Raises:
            InvalidInputError: the repository is in memory.
        """
        return maintenance.doctor.diagnose(self._store, self._writer.environment)

    def versions(self) -> dict[str, str]:
        """Return the versions and the file system that a bug report should name; raises as `doctor`."""
        import msgpack

        is_fast = maintenance.doctor.is_compiled(getattr(msgpack, "Packer", None))
        return {
            "python": ".".join(map(str, sys.version_info[:3])),
            "platform": sys.platform,
            "file_system": self.file_system.name,
            "msgpack": f"{'.'.join(map(str, msgpack.version))} ({'C' if is_fast else 'Python'})",
            "blake3": str(getattr(sys.modules.get("blake3"), "__version__", "unknown")),
            "zstd": "built in" if sys.version_info >= (3, 14) else "backports",
        }

    def du(self) -> StoreUsage:
        """Return the space that branches, tags and files take; damaged objects are skipped."""
        return maintenance.du.measure(self._store)

    def adopt(self, *, keep_mine: bool = False) -> AdoptReport:
        """Accept refs that git moved under this process; with `keep_mine` move them back. Nothing is lost.

        Other open processes may do the same.
        """
        check.flag(keep_mine=keep_mine)
        adopt, refs = maintenance.adopt, self._store.refs
        changed = adopt.changed_refs(self._store)
        kept: list[tuple[str, ObjectId]] = []
        gone: list[tuple[str, ObjectId]] = []
        for name, before, now in changed:
            if before is None:
                continue
            objects = adopt.removed_objects(self._store, before)
            if objects is None:
                gone.append((name, before))
                continue
            refs.known.pop(name, None)
            edits = adopt.keep_values(
                self._writer, (name, before, now), objects, keep_mine=keep_mine
            )
            kept += [(e.name, e.new) for e in edits if e.name != name and e.new is not None]
        maintenance.seal.seal(self._store, fully=True)
        if not keep_mine:
            write_adopted(self._store.disk, self._store.layout, refs.iterate())
            refs.known.clear()  # this process accepts the values on disk as well
        return adopt.AdoptReport(tuple(changed), tuple(kept), tuple(gone))

    def plan_purge(
        self,
        *objects: Revision,
        texts: Iterable[str | bytes] = (),
        again: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> PurgePlan:
        """Return what a purge would remove: objects, and all content that holds one of some texts.

        Args:
            objects: ids of content, or their beginnings.
            texts: texts, or their UTF-8, which are found in every encoding.
            again: include content that holds a text which was purged before.
            progress: called with the number of objects read.

        Raises:
            ObjectNotFoundError: an object is not here, and was not purged.
            InvalidInputError: an object is not content, or a text is too short to search for.
        """
        check.items(texts=texts)
        check.flag(again=again)
        check.function(progress=progress)
        named = [resolve(self._store, name_of(each, "objects")) for each in objects]
        return maintenance.purge.plan_purge(
            self._store, named, texts, again=again, progress=progress
        )

    def purge(
        self,
        plan: PurgePlan,
        *,
        why: str = "",
        dry_run: bool = False,
        verify: bool = False,
        force: bool = False,
    ) -> PurgeReport:
        """Remove for good what a plan names, and leave tombstones.

        Messages that a branch shows first get a wording without the texts of the plan, in a commit of their own. What
        remains purged whole are earlier wordings, images and signed reasoning.

        Args:
            plan: from `plan_purge`.
            why: the reason, one line, which everybody may read.
            dry_run: write nothing.
            verify: search all files afterwards.
            force: remove content so short that other messages will say the same.

        Raises:
            InvalidInputError: the reason has several lines, or short content needs `force`.
        """
        check.instance(maintenance.purge.PurgePlan, plan=plan)
        check.text(why=why)
        check.flag(dry_run=dry_run, verify=verify, force=force)
        check_reason(why)
        if not (dry_run or force):
            plan.check_common()
        reworded = self._reword(plan, dry_run=dry_run)
        report = maintenance.purge.purge(
            self._store,
            plan,
            why=why,
            by=self._writer.author,
            dry_run=dry_run,
            verify=verify,
            force=force,
        )
        if report.tombstones and not dry_run:
            self._log(f"purge: {report.tombstones:,} objects removed")
        return replace(report, reworded=reworded)

    def _reword(self, plan: PurgePlan, *, dry_run: bool = False) -> tuple[Any, ...]:
        observers = self._writer.observers.purging
        return tuple(
            each for observer in observers for each in observer(self._writer, plan, dry_run)
        )

    def purge_and_rewrite(
        self, plan: PurgePlan, *, why: str = "", verify: bool = False
    ) -> tuple[PurgeReport, RewrittenHistory]:
        """Remove what a plan names, and rewrite every commit that follows, so that no id of the content remains.

        Other clones must be replaced by new ones. Nothing keeps the content from being stored again. Message addresses
        keep the ids of old commits, which can still confirm a guess of short content. Arguments as in `purge`.

        Raises:
            StateError: an affected ref has several tips, or HEAD is detached.
            RefChangedError: another process moves a ref; nothing is changed.
            As `purge`.
        """
        purge, objects = maintenance.purge, self._store.objects
        check.instance(purge.PurgePlan, plan=plan)
        check.text(why=why)
        check.flag(verify=verify)
        check_reason(why)
        reworded = self._reword(plan)
        rewritten = purge.rewrite_history(self._writer, plan.objects, plan.texts, why=why)
        unreachable = [holder.commit for holder in plan.holders.commits if not holder.refs]
        gone = dict.fromkeys([*plan.objects, *rewritten.objects, *plan.structure, *unreachable])
        report = purge.purge(
            self._store,
            replace(plan, objects=tuple(gone)),
            why=why,
            by=self._writer.author,
            force=True,
            keep_out=False,
        )
        self._log(f"purge: {len(gone):,} objects removed, history rewritten")
        objects.tombstones.remove(gone)  # the name of one contains the content's id
        objects.refresh()
        absence = None
        if verify:
            purged = objects.purged | gone.keys()
            absence = maintenance.verify_purged.search(
                self._store, purged, plan.texts, plan.contents
            )
        return replace(
            report, plan=plan, tombstones=0, absence=absence, reworded=reworded
        ), rewritten

    def allowed_secrets(self) -> list[str]:
        """Return the ids of findings that the user marked as false positives in this repository.

        Raises:
            InvalidInputError: the repository is in memory.
        """
        self._store.check_local()
        return secrets.user_files.allowed(
            self._store.disk, self._writer.environment, self._store.config.store_id
        )

    def allow_secrets(self, *ids: str, remove: bool = False) -> None:
        """Mark findings, by the ids in their placeholders, as false positives; with `remove` no longer.

        The list is a file of the user, outside the repository. It takes effect when the repository is opened next;
        placeholders that are stored already stay.

        Raises:
            StateError: the user has no data folder.
            InvalidInputError: one is not the id of a finding, or the repository is in memory.
            NotFoundError: one is to be removed and is not in the list.
        """
        check.flag(remove=remove)
        for each in ids:
            check.text(ids=each)
            if not secrets.user_files.is_finding_id(each):
                raise errors.InvalidInputError(f"not a finding id: {each[:40]}", value=each)
        known = self.allowed_secrets()
        missing = [each for each in ids if remove and each not in known]
        if missing:
            raise errors.NotFoundError(f"{missing[0]} is not in the list")
        known = [each for each in dict.fromkeys([*known, *ids]) if not (remove and each in ids)]
        secrets.user_files.write_allowed(
            self._store.disk, self._writer.environment, self._store.config.store_id, known
        )

    def scan_secrets(
        self,
        start: Revision | None = None,
        *,
        progress: Callable[[int], None] | None = None,
    ) -> SecretScan:
        """Search what is stored for secrets: everything, or what one revision leads to. No value is returned.

        Raises:
            RevisionNotFoundError: there is no such revision.
        """
        check.function(progress=progress)
        oid = None if start is None else resolve(self._store, name_of(start, "start"))
        return maintenance.object_scan.scan_stored(
            self._store, self._writer.guard.scanner.find_bytes, oid, progress=progress
        )

    def scan_files(self, path: Path) -> FileScan:
        """Search a file, or all files below a folder, for secrets; links are not followed. No value is returned."""
        check.path(path=path)
        find_bytes = self._writer.guard.scanner.find_bytes
        return maintenance.object_scan.scan_files(
            self._store.disk, os.path.abspath(path), find_bytes
        )
