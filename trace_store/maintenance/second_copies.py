"""Second copies, in the ignored part of `.trace`, of data that git lacks.

Invariant: `git clean`, `git stash -u` and the like remove files that git never had. So each new pack has a hard
link under `local/packs/`, and `local/published` has the ref values. Both are restored if files are missing that no
git commit contains. What git had and removed, by a switch or reset, stays removed.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId, is_full_id
from trace_store.contracts.ref_names import is_ref_name
from trace_store.disk.files import create_file, read_file
from trace_store.disk.git import ask_git, committed, find_git
from trace_store.disk.layout import PACK_SUFFIX
from trace_store.odb.packs import missing_packs
from trace_store.store.revision import refs_by_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.disk.files import Disk
    from trace_store.disk.layout import Layout
    from trace_store.store.store import Store


@value
class RestoredData:
    """Restored data.

    Attributes:
        packs: names of packs.
        tips: (name, value) of refs.
    """

    packs: tuple[str, ...] = ()
    tips: tuple[tuple[str, ObjectId], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.packs or self.tips)


def keep_copies(store: Store, names: list[str]) -> None:
    """Add second names for packs, or copies without hard links; not synced.

    Raises:
        StorageError: a pack is missing, or the disk refuses.
    """
    if not names:
        return
    disk, layout = store.disk, store.layout
    if not disk.exists(layout.kept_config_file):
        disk.make_directory(layout.local_dir)
        disk.make_directory(layout.kept_packs_dir)
        _keep_settings(disk, layout)
    for name in names:
        source, target = layout.pack_file(name), layout.kept_pack_file(name)
        if disk.link(source, target) or disk.exists(target):
            continue
        data = read_file(disk, source)
        if data is None:
            raise errors.StorageError("a pack was removed during the seal", path=source)
        create_file(disk, target, data, durable=False)


def forget_copies(store: Store, names: list[str]) -> None:
    """Remove second names of packs."""
    for name in names:
        store.disk.remove(store.layout.kept_pack_file(name))


def forget_committed(store: Store) -> None:
    """Remove second names of packs that a git commit contains."""
    layout = store.layout
    kept = [n for n in store.disk.names(layout.kept_packs_dir) if n.endswith(PACK_SUFFIX)]
    paths = {layout.pack_file(n): n for n in (name.removesuffix(PACK_SUFFIX) for name in kept)}
    forget_copies(
        store, [paths[path] for path in committed(store.disk, store.layout.root, list(paths)) or ()]
    )


def restore_missing(store: Store) -> RestoredData:
    """Restore packs and ref tips that were deleted and that git never had; in a new clone, choose the branch of HEAD.

    Nothing is synced: the second copies remain. Without git nothing is restored, since packs and tips may have been
    deleted on purpose.

    Raises:
        StorageError: the disk refuses.
    """
    with store.mutex:
        store.journal.refresh()
    if store.journal.published.stamp is None:
        if store.refs.summary.is_scanned_clone():
            return RestoredData()
        tips = _tips_of_index(store)
        _choose_head(store)
        return RestoredData(tips=tips)
    packs = missing_packs(store.disk, store.layout)
    published, read = store.journal.published.tips, store.refs.files.read
    moved = [name for name, _, _ in store.refs.status().moved]
    missing = [
        (name, tip) for name in moved for tip in published.get(name) if tip not in read(name)
    ]
    return _restore(store, packs, missing)


def _choose_head(store: Store) -> None:
    """Set HEAD, which git does not carry, to the branch worked on last, if its default branch has no commit."""
    if store.disk.exists(store.layout.head_file) or not store.refs.head().unborn:
        return
    for newest in refs_by_time(store)[:1]:
        try:
            store.refs.set_head(newest, message="clone: the branch worked on last", author="git")
        except errors.StorageError:
            return  # the clone cannot be written to


def restore_tips(
    store: Store, missing: list[tuple[str, ObjectId]]
) -> tuple[tuple[str, ObjectId], ...]:
    """Restore those of some ref tips that git never had, with missing packs.

    Return the tips.

    Args:
        store: the repository.
        missing: (name, tip) written by this working copy and missing from its files.

    Raises:
        StorageError: the disk refuses.
    """
    return _restore(store, [], missing).tips


def _restore(store: Store, packs: list[str], tips: list[tuple[str, ObjectId]]) -> RestoredData:
    layout, disk, files = store.layout, store.disk, store.refs.files
    if not (packs or tips):
        return RestoredData()
    packs = packs or missing_packs(store.disk, store.layout)
    paths = {layout.pack_file(name) for name in packs}
    paths.update(os.path.join(layout.ref_dir(name), str(tip)) for name, tip in tips)
    in_git = committed(store.disk, store.layout.root, sorted(paths))
    if in_git is None:
        return RestoredData()
    packs = [name for name in packs if layout.pack_file(name) not in in_git]
    for name, tip in tips:
        if os.path.join(layout.ref_dir(name), str(tip)) in in_git:
            store.refs.removed_by_git.add(name)
    for name in packs:
        _restore_pack(disk, layout, name)
    if packs:
        with store.mutex:
            store.objects.packs.refresh()
    tips = [
        (name, tip)
        for name, tip in tips
        if os.path.join(layout.ref_dir(name), str(tip)) not in in_git
        and store.objects.contains(tip)
    ]
    for name, tip in tips:
        files.add(name, tip)
    return RestoredData(tuple(packs), tuple(tips))


def _keep_settings(disk: Disk, layout: Layout) -> None:
    data = read_file(disk, layout.config_file)
    if data is not None and data != read_file(disk, layout.kept_config_file):
        disk.remove(layout.kept_config_file)
        create_file(disk, layout.kept_config_file, data, durable=False)


def _restore_pack(disk: Disk, layout: Layout, name: str) -> None:
    source, target = layout.kept_pack_file(name), layout.pack_file(name)
    disk.make_directory(layout.pack_dir)
    if not disk.exists(source):
        return  # another process has consolidated it
    if not disk.link(source, target) and not disk.exists(target):
        data = read_file(disk, source)
        if data is not None:
            create_file(disk, target, data, durable=False)


def _tips_of_index(store: Store) -> tuple[tuple[str, ObjectId], ...]:
    """Restore and return tips that are in git's index but not in the work tree.

    For a working copy without local state: `git clean -x` removes sealed data together with its record, and leaves
    a branch without a tip.
    """
    root = store.layout.root
    if find_git(store.disk, root) is None:
        return ()
    folder, own = os.path.split(root)
    answer = ask_git(folder, "ls-files", "--deleted", "-z", "--", f"{own}/refs") or ""
    tips: list[tuple[str, ObjectId]] = []
    for path in answer.split("\0"):
        name, _, tip = path.removeprefix(f"{own}/").rpartition("/")
        if is_ref_name(name) and is_full_id(tip) and not store.refs.files.read(name):
            tips.append((name, ObjectId.parse(tip)))
    restored = tuple(each for each in tips if store.objects.contains(each[1]))
    for name, oid in restored:
        store.refs.files.add(name, oid)
    return restored
