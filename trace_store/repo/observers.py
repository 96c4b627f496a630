"""The observers of an open repository: what it does before and after every change, and during imports.

Rule: verbs are on lower floors and know nothing of this; `observe` registers it with their writer.
"""

from __future__ import annotations

import trace_store
from trace_store import errors
from trace_store.store.config import AUTOMATIC_SETTING, CAPTURE_SETTING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from trace_store.base.oid import ObjectId
    from trace_store.context.session_lists import Entries
    from trace_store.history.draft import CommitResult
    from trace_store.history.purged_text import Rewording
    from trace_store.importers.contract import Watcher
    from trace_store.maintenance.purge import PurgePlan
    from trace_store.maintenance.schedule import SealSchedule
    from trace_store.store.store import Store
    from trace_store.writer import Writer


def observe(writer: Writer) -> None:
    """Register the effects of changes: refusals, automatic checkpoints, capture and seals."""
    observers = writer.observers
    observers.before.append(_before)
    observers.committed.append(_Committed())
    observers.importing += [_Listing, _import_milestones, _import_capture]
    observers.purging.append(_reword)
    observers.sealing.append(_record_links)


def _before(writer: Writer, change: str, refs: Collection[str]) -> None:
    store = writer.store
    if any(store.disk.exists(store.layout.stopped_file(ref)) for ref in refs):
        trace_store.merge.in_progress.refuse_while_stopped(store, refs)
    if _saves_automatically(store):
        trace_store.checkpoints.automatic.before(writer, change)


class _Committed:
    """Acts on changes that are durable; a class, because it keeps the schedule of seals.

    A failure is ignored, since the change is made.
    """

    __slots__ = ("_schedule",)

    def __init__(self) -> None:
        self._schedule: SealSchedule | None = None

    def __call__(self, writer: Writer, result: CommitResult | None) -> None:
        store = writer.store
        if result is not None:
            if _saves_automatically(store):
                try:  # noqa: SIM105 - contextlib is slow to load
                    trace_store.checkpoints.automatic.after(writer, result)
                except errors.TraceError:
                    pass
            if result.message_count and store.config.get(CAPTURE_SETTING) == "on":
                capture = trace_store.trajectories.trajectories.Trajectories(writer).capture
                capture.after_commit(result.oid, result.ref or "")
        if self._schedule is None:
            self._schedule = trace_store.maintenance.schedule.SealSchedule(store)
        self._schedule.seal_if_due()


def _reword(writer: Writer, plan: PurgePlan, dry_run: bool) -> Sequence[Rewording]:
    """Reword messages without the texts of a purge; a purge by id names no text."""
    if not plan.texts:
        return ()
    replace_in = trace_store.maintenance.purge.without_texts(plan)
    return trace_store.history.purged_text.reword(
        writer, plan.holders.refs, plan.objects, replace_in, dry_run=dry_run
    )


def _record_links(writer: Writer) -> None:
    """Record the links that wait for the next event of a trajectory, so that clones have them."""
    disk, layout = writer.store.disk, writer.store.layout
    if disk.exists(layout.seen_file) or disk.exists(layout.waiting_dir):
        trace_store.trajectories.recording.Recorder(writer).record_all_waiting()


def _import_milestones(writer: Writer) -> Watcher | None:
    if not _saves_automatically(writer.store):
        return None
    return trace_store.checkpoints.automatic.ImportMilestones(writer)


def _import_capture(writer: Writer) -> Watcher | None:
    is_on = writer.store.config.get(CAPTURE_SETTING) == "on"
    return _ImportCapture(writer) if is_on else None


class _ImportCapture:
    """Records the blocks (decisions, findings, …) in imported messages in a trajectory, at the end of the import.

    Part of a block in an unfinished file comes with its next import.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def note(self, *_: object) -> None:
        """Wait for the end of the import."""

    def end_file(self, _: object) -> None:
        """Wait for the end of the import."""

    def found(self) -> None:
        """Return nothing: it reads the branches at the end."""

    def take(self, found: None) -> None:
        """Wait for the end of the import."""

    def end(self, tips: Mapping[str, ObjectId]) -> None:
        """Record the blocks on the branches that were imported."""
        trace_store.trajectories.trajectories.Trajectories(self._writer).capture.after_import(tips)


class _Listing:
    """Lists the sessions of an import while it has them, so that no later command needs to read them for that."""

    def __init__(self, writer: Writer) -> None:
        self._lister = trace_store.sessions.listing.SessionLister(writer.store)

    def note(self, *_: object) -> None:
        """Wait for the end of the file."""

    def end_file(self, branches: Iterable[tuple[str, ObjectId]]) -> None:
        """List the sessions of a file."""
        self._lister.list_imported(branches)

    def found(self) -> Entries:
        """Return the rows so far."""
        return self._lister.known.own

    def take(self, found: Entries) -> None:
        """Add the rows of a file."""
        self._lister.known.learn_all(found)

    def end(self, tips: Mapping[str, ObjectId]) -> None:
        """List the sessions that other files changed later, and save the list."""
        self._lister.list_imported(tips.items())
        self._lister.save()


def _saves_automatically(store: Store) -> bool:
    return store.config.get(AUTOMATIC_SETTING) not in (None, "", "off")
