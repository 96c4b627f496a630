"""A second place for what git does not have yet, in the part of `.trace` that git ignores.

Rule: `git clean`, `git stash -u` and the like take away files that git never had; what git itself has, it can bring
back. So each new pack has a hard link under `local/packs/`, the values of refs stand in `local/published`, and both
are put back when files are missing that no commit of git holds. What git had and took away (a switch to another
branch, a reset) was meant, and stays away.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.files import create_file, read_file
from trace_store.frozen import value
from trace_store.layout import PACK_SUFFIX
from trace_store.maintenance.git_settings import find_git
from trace_store.odb.database import ObjectDatabase
from trace_store.oid import ObjectId, is_full_id
from trace_store.ref_names import is_ref_name
from trace_store.refs.database import RefDatabase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.files import Disk
    from trace_store.layout import Layout
    from trace_store.store.handle import Store

MAXIMUM_REFLOG = 2_000


@value
class PutBack:
    """What was put back.

    Attributes:
        packs: the names of packs.
        tips: (name, value) of refs.
    """

    packs: tuple[str, ...] = ()
    tips: tuple[tuple[str, ObjectId], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.packs or self.tips)


def keep_copies(store: Store, names: list[str]) -> None:
    """Give packs a second name; a copy where the file system has no links. It need not survive a power cut.

    Raises:
        StorageError: a pack is gone already, or the disk refuses.
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
            raise errors.StorageError("a pack was removed while it was being sealed", path=source)
        create_file(disk, target, data, durable=False)


def forget_copies(store: Store, names: list[str]) -> None:
    """Remove the second names of packs that are not wanted any more."""
    for name in names:
        store.disk.remove(store.layout.kept_pack_file(name))


def forget_committed(store: Store) -> None:
    """Remove the second names of packs that a commit of git holds."""
    layout = store.layout
    kept = [n for n in store.disk.names(layout.kept_packs_dir) if n.endswith(PACK_SUFFIX)]
    paths = {layout.pack_file(n): n for n in (name.removesuffix(PACK_SUFFIX) for name in kept)}
    forget_copies(store, [paths[path] for path in _committed(store, list(paths)) or ()])


def put_back(store: Store) -> PutBack:
    """Put back what was taken away and git never had: packs, and tips of refs.

    Nothing is synced: the second copies stay, and what a power cut takes is put back again.
    Where there is no git nothing is put back: packs and tips may have been removed there on purpose.

    Raises:
        StorageError: the disk refuses.
    """
    if not store.local or not isinstance(store.refs, RefDatabase):
        return PutBack()
    with store.mutex:
        store.journal.refresh()
    if store.journal.published.stamp is None:
        return PutBack(tips=_tips_of_index(store))
    packs = store.missing_packs()
    published, read = store.journal.published.tips, store.refs.files.read
    moved = [name for name, _, _ in store.refs.standing().moved]
    gone = [(name, tip) for name in moved for tip in published.get(name) if tip not in read(name)]
    return _put_back(store, packs, gone)


def put_back_tips(
    store: Store, gone: list[tuple[str, ObjectId]]
) -> tuple[tuple[str, ObjectId], ...]:
    """Put back those of some tips of refs that git never had, with all packs of that kind; return these tips.

    Args:
        store: where.
        gone: (name, tip) that this working copy has written, and that its files were seen without.

    Raises:
        StorageError: the disk refuses.
    """
    return _put_back(store, [], gone).tips


def _put_back(store: Store, packs: list[str], tips: list[tuple[str, ObjectId]]) -> PutBack:
    assert isinstance(store.refs, RefDatabase)
    assert isinstance(store.objects, ObjectDatabase)
    layout, disk, files = store.layout, store.disk, store.refs.files
    if not (packs or tips):
        return PutBack()
    packs = packs or store.missing_packs()
    paths = {layout.pack_file(name) for name in packs}
    paths.update(os.path.join(layout.ref_dir(name), str(tip)) for name, tip in tips)
    committed = _committed(store, sorted(paths))
    if committed is None:
        return PutBack()
    packs = [name for name in packs if layout.pack_file(name) not in committed]
    for name, tip in tips:
        if os.path.join(layout.ref_dir(name), str(tip)) in committed:
            store.refs.taken_by_git.add(name)
    for name in packs:
        _copy_back(disk, layout, name)
    if packs:
        with store.mutex:
            store.objects.packs.refresh()
    tips = [
        (name, tip)
        for name, tip in tips
        if os.path.join(layout.ref_dir(name), str(tip)) not in committed
        and store.objects.contains(tip)
    ]
    for name, tip in tips:
        files.add(name, tip)
    return PutBack(tuple(packs), tuple(tips))


def _keep_settings(disk: Disk, layout: Layout) -> None:
    data = read_file(disk, layout.config_file)
    if data is not None and data != read_file(disk, layout.kept_config_file):
        disk.remove(layout.kept_config_file)
        create_file(disk, layout.kept_config_file, data, durable=False)


def _copy_back(disk: Disk, layout: Layout, name: str) -> None:
    source, target = layout.kept_pack_file(name), layout.pack_file(name)
    disk.make_directory(layout.pack_dir)
    if not disk.exists(source):
        return  # another process has folded it into a larger one meanwhile
    if not disk.link(source, target) and not disk.exists(target):
        data = read_file(disk, source)
        if data is not None:
            create_file(disk, target, data, durable=False)


def _committed(store: Store, paths: list[str]) -> set[str] | None:
    """Return those of some paths that a commit of git holds, other than a stash; None where git is not at hand.

    Looked for in what branches, tags, HEAD and its reflog lead to: who resets to an earlier commit means it. Where git
    fails none is, since to put back too much does less harm than to lose something.
    """
    root = store.layout.root
    if find_git(store.disk, root) is None:
        return None
    folder = os.path.dirname(root)

    def ask(*words: str, text: str = "") -> str | None:
        return _ask_git(folder, *words, text=text)

    top = ask("rev-parse", "--show-toplevel")
    if top is None:
        return None  # this is no work tree of its, or git is not installed
    if ask("rev-parse", "--verify", "-q", "HEAD") is None:
        return set()  # nothing was committed yet
    top = top.rstrip("\n")
    here = os.path.realpath(root)
    wanted = {
        os.path.relpath(os.path.join(here, os.path.relpath(path, root)), top).replace(
            os.sep, "/"
        ): path
        for path in paths
    }
    logged = ask("reflog", "show", "--format=%H", f"-n{MAXIMUM_REFLOG}", "HEAD") or ""
    log = ("log", "-m", "--format=", "--name-only", "-z", "--no-renames", "--diff-filter=A")
    found = ask(
        *(*log, "--no-show-signature", "--branches", "--tags", "--remotes", "HEAD", "--stdin"),
        text="".join(
            [*(f"{line}\n" for line in logged.split()), "--\n"]
            + [f":(top,literal){each}\n" for each in wanted]
        ),
    )
    return {wanted[each] for each in (found or "").split("\0") if each in wanted}


def _tips_of_index(store: Store) -> tuple[tuple[str, ObjectId], ...]:
    """Put back tips that git's index has and the work tree has not, and return them.

    For a working copy that remembers nothing: `git clean -x` takes away what is sealed and what is known of it, and
    leaves a branch without any tip.
    """
    assert isinstance(store.refs, RefDatabase)
    root = store.layout.root
    if find_git(store.disk, root) is None:
        return ()
    folder, own = os.path.split(root)
    answer = _ask_git(folder, "ls-files", "--deleted", "-z", "--", f"{own}/refs") or ""
    found: list[tuple[str, ObjectId]] = []
    for path in answer.split("\0"):
        name, _, tip = path.removeprefix(f"{own}/").rpartition("/")
        if is_ref_name(name) and is_full_id(tip) and not store.refs.files.read(name):
            found.append((name, ObjectId.parse(tip)))
    here = tuple(each for each in found if store.objects.contains(each[1]))
    for name, oid in here:
        store.refs.files.add(name, oid)
    return here


def _ask_git(folder: str, *words: str, text: str = "") -> str | None:
    """Return what git answers; None when it fails, or is not installed."""
    import subprocess  # seldom needed, and slow to load

    # The settings of a stranger's work tree shall start no program, and `.trace` itself be no repository of git's.
    options = ("core.fsmonitor=false", "safe.bareRepository=explicit", "core.quotePath=false")
    command = ["git", "-C", folder, *(word for option in options for word in ("-c", option))]
    try:
        answer = subprocess.check_output(
            [*command, *words], input=text.encode(), stderr=subprocess.DEVNULL, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return os.fsdecode(answer)
