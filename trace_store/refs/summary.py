"""A summary of all refs, cached so that few files have to be read.

    refs 1
    sign 66312-… 66312-…
    published (66312, …)
    counts 10002 10000
    refs/heads/main
    …
    check 1c8e02f7

Rule: a ref is *settled* if it has one tip file, which this working copy published, and the commit exists. With many
refs, the file `cache/refs` lists the unsettled ones, with a change stamp and the state of `local/published`. While both
are unchanged, only the unsettled refs, refs moved by journals, and HEAD's branch are read. Results always come from the
current files. The file is derived: without it all refs are read.

Rule: a clone has published nothing until its first seal. Until then the file has the tip of each settled ref as well,
in lines like `tip 1c8e… refs/heads/main`.

Rule: the change stamp takes two stat calls, however many refs there are. git rewrites its index after changing tracked
files, and adding or removing a branch by hand changes the branches directory.
"""

from __future__ import annotations

import os
from zlib import crc32

from trace_store import disk as disks
from trace_store import errors
from trace_store.base.oid import HEX_CHARACTERS, ObjectId
from trace_store.contracts.ref_names import BRANCHES, is_ref_name
from trace_store.disk.files import read_file, replace_file, stamp
from trace_store.journal.published import stamp_of
from trace_store.refs.resolution import is_unexplained

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from trace_store.disk.files import Disk
    from trace_store.disk.layout import Layout
    from trace_store.journal.journal import Journal
    from trace_store.journal.published import Published
    from trace_store.refs.tips import TipFiles

    Tips = Sequence[ObjectId]

ALWAYS_READ = 32
"""Up to this many refs are always read, which takes as long as reading the cache."""
_HEAD = "refs 1"
_TIP = "tip "


class RefStatus:
    """Refs that need attention.

    Attributes:
        moved: (name, last written value, current value) of refs that another program moved since the last seal.
        diverged: refs with several tips, and those tips.
        incomplete: refs with a missing tip.
        branch_count: the number of branches.
        table: the name of the table of published tips, "" if there is none; None if all refs have to be compared.
        since_table: the refs that may differ from the table.
    """

    __slots__ = ("branch_count", "diverged", "incomplete", "moved", "since_table", "table")

    def __init__(self) -> None:
        self.moved: list[tuple[str, ObjectId | None, ObjectId | None]] = []
        self.diverged: dict[str, tuple[ObjectId, ...]] = {}
        self.incomplete: list[str] = []
        self.branch_count = 0
        self.table: str | None = None
        self.since_table: set[str] = set()


class Scan:
    """The result of reading all refs, for one state of the published tips.

    Attributes:
        unsettled: names of the unsettled refs.
        published: how many refs have published tips.
        branches: how many of them are branches.
        sign: the change stamp; None if unreliable.
        cloned: before the first seal of a clone, the tips of the settled refs; else None.
    """

    __slots__ = ("branches", "cloned", "published", "sign", "unsettled")

    def __init__(
        self,
        unsettled: Iterable[str],
        published: int,
        branches: int,
        sign: tuple[str, str] | None,
        cloned: ClonedTips | None = None,
    ) -> None:
        self.unsettled = frozenset(unsettled)
        self.published = published
        self.branches = branches
        self.sign = sign
        self.cloned = cloned

    def of_published(self) -> Scan:
        """Return the scan by what was published: before the first seal of a clone, no ref is settled."""
        if self.cloned is None:
            return self
        return Scan({*self.unsettled, *self.cloned.all()}, 0, 0, self.sign)


class ClonedTips:
    """The tip of each settled ref of a clone, as lines of text, which a search needs not take apart.

    Attributes:
        lines: the lines.
    """

    __slots__ = ("lines",)

    def __init__(self, lines: bytes) -> None:
        self.lines = lines

    @classmethod
    def of(cls, tips: Iterable[tuple[str, ObjectId]]) -> ClonedTips:
        """Return these tips by name."""
        return cls("".join(f"{_TIP}{tip} {name}\n" for name, tip in tips).encode("ascii"))

    def get(self, name: str) -> Tips:
        """Return the tip of a ref; nothing if it is not settled."""
        lines = self.lines
        end = lines.find(f" {name}\n".encode())
        return () if end < 0 else (ObjectId.parse(lines[end - HEX_CHARACTERS : end].decode()),)

    def all(self) -> dict[str, Tips]:
        """Return the tip of each ref."""
        rows = (line.split(" ") for line in self.lines.decode("ascii").splitlines())
        return {name: (ObjectId.parse(tip),) for _, tip, name in rows}

    def naming(self, tips: Iterable[ObjectId]) -> dict[ObjectId, list[str]]:
        """Return, for each of some tips, the names of the refs that have it."""
        found: dict[ObjectId, list[str]] = {}
        for tip in tips:
            pieces = self.lines.split(f"{_TIP}{tip} ".encode())[1:]
            found[tip] = [piece.partition(b"\n")[0].decode() for piece in pieces]
        return found


class RefSummary:
    """Reads the refs of one repository, and caches the result."""

    __slots__ = ("_contains", "_disk", "_files", "_has_read", "_journal", "_layout")

    def __init__(
        self,
        disk: Disk,
        layout: Layout,
        journal: Journal,
        files: TipFiles,
        contains: Callable[[bytes], bool],
    ) -> None:
        self._disk = disk
        self._layout = layout
        self._journal = journal
        self._files = files
        self._contains = contains
        self._has_read = False

    def scan(self, *, fully: bool = False) -> Scan:
        """Return the unsettled refs.

        Called under the store's mutex, with the journal up to date.

        `fully` ignores the cache.
        """
        published = self._journal.published
        sign = change_stamp(self._disk, self._layout)
        known = None if fully else self._load(published)
        if known is not None and sign is not None and known.sign == sign:
            return known
        files = dict(self._files.iterate())
        self._has_read = True
        if published.stamp is None:
            scan = self._scan_clone(files, sign)
            self._save(scan, None)
            return scan
        tips = published.tips.all()
        unsettled = [
            name
            for name in {**tips, **files}
            if not self._is_settled(files.get(name, ()), tips.get(name, ()))
        ]
        branches = sum(name.startswith(BRANCHES) for name in tips)
        scan = Scan(unsettled, len(tips), branches, sign)
        self._save(scan, published.stamp)
        return scan

    def _scan_clone(self, files: Mapping[str, Tips], sign: tuple[str, str] | None) -> Scan:
        settled = {name: tips[0] for name, tips in files.items() if self._is_settled(tips, tips)}
        unsettled = files.keys() - settled.keys()
        branches = sum(name.startswith(BRANCHES) for name in settled)
        return Scan(unsettled, len(settled), branches, sign, ClonedTips.of(settled.items()))

    def is_scanned_clone(self) -> bool:
        """Return True if an earlier command in a clone before its first seal read all refs, and nothing has changed."""
        published = self._journal.published
        if self._has_read:
            return False
        known = self._load(published) if published.stamp is None else None
        return known is not None and known.sign == change_stamp(self._disk, self._layout)

    def status(self, head: object, tips_of: Callable[[str], tuple[ObjectId, ...]]) -> RefStatus:
        """Return the refs that need attention.

        Args:
            head: what HEAD names.
            tips_of: returns the tips of a ref.
        """
        scan = self.scan()
        journal, status = self._journal, RefStatus()
        known, folds = journal.published.tips, journal.fold.refs
        wanted = self._unsettled_names(scan, head)
        status.branch_count = scan.branches
        for name in sorted(wanted):
            tips, before = tips_of(name), known.get(name, ())
            if name.startswith(BRANCHES):
                counted = before if scan.cloned is None else scan.cloned.get(name)
                status.branch_count += bool(tips) - bool(counted)
            if len(tips) > 1:
                status.diverged[name] = tips
            if not all(map(self._contains, tips)):
                status.incomplete.append(name)
            files = self._files.read(name)
            if set(files) != set(before) and is_unexplained(files, before, folds.get(name)):
                status.moved.append(
                    (name, before[0] if before else None, tips[0] if tips else None)
                )
        published = journal.published
        if published.stamp is not None and not (published.damaged or known.lacking):
            status.table = "" if known.table is None else known.table.name
            status.since_table = {*known.changed, *folds, *scan.unsettled}
        if journal.published.stamp is None:
            status.moved = []  # a fresh clone: nothing was written here yet
        return status

    def names_of(
        self,
        commits: Iterable[ObjectId],
        head: object,
        tips_of: Callable[[str], tuple[ObjectId, ...]],
    ) -> dict[ObjectId, list[str]]:
        """Return, for each commit, the sorted names of the refs with that value.

        Args:
            commits: their ids.
            head: what HEAD names.
            tips_of: returns the tips of a ref.
        """
        # First, because it detects a damaged table.
        commits = list(commits)
        named = self._journal.published.tips.naming(commits)
        scan = self.scan()
        if scan.cloned is not None:
            named = scan.cloned.naming(commits)
        wanted = self._unsettled_names(scan, head)
        result = {
            oid: [name for name in names if name not in wanted] for oid, names in named.items()
        }
        for name in wanted:
            tips = tips_of(name)
            if tips and tips[0] in result:
                result[tips[0]].append(name)
        return {oid: sorted(names) for oid, names in result.items()}

    def values(
        self, head: object, tips_of: Callable[[str], tuple[ObjectId, ...]]
    ) -> dict[str, ObjectId]:
        """Return the value of each ref, unsorted; arguments as in `names_of`."""
        published: Mapping[str, Tips] = self._journal.published.tips.all()
        scan = self.scan()
        if scan.cloned is not None:
            published = scan.cloned.all()
        wanted = self._unsettled_names(scan, head)
        values = {name: tips[0] for name, tips in published.items() if tips and name not in wanted}
        values.update((name, tips[0]) for name in wanted if (tips := tips_of(name)))
        return values

    def update(
        self, scan: Scan, before: Published, changes: dict[str, tuple[ObjectId, ...]]
    ) -> None:
        """Update the cache after a seal.

        Args:
            scan: the scan before the seal.
            before: the published tips before the seal.
            changes: the refs whose published tips changed.
        """
        stamp = stamp_of(self._disk, self._layout.published_file)
        if scan.sign is None or stamp is None:
            return
        came = {name: bool(tips) - bool(before.tips.get(name)) for name, tips in changes.items()}
        tips = {**{name: before.tips.get(name) for name in scan.unsettled}, **changes}
        unsettled = [n for n in tips if not self._is_settled(self._files.read(n), tips[n])]
        published = scan.published + sum(came.values())
        branches = scan.branches + sum(n for name, n in came.items() if name.startswith(BRANCHES))
        sign = scan.sign[0], branches_stamp(self._disk, self._layout)
        self._save(Scan(unsettled, published, branches, sign), stamp)

    def forget(self) -> None:
        """Remove the cache."""
        self._disk.remove(self._layout.refs_file)

    def _unsettled_names(self, scan: Scan, head: object) -> set[str]:
        """Return the names of the refs that must be read."""
        folds = self._journal.fold.refs
        wanted = {*scan.unsettled, *folds, *([head] if isinstance(head, str) else ())}
        if len(wanted) > ALWAYS_READ:
            self._journal.published.tips.all()  # one by one would take longer
        return wanted

    def _is_settled(self, files: Tips, published: Tips) -> bool:
        if not files and not published:
            return True  # the ref no longer exists
        return len(files) == 1 and [*files] == [*published] and self._contains(files[0])

    def _load(self, published: Published) -> Scan | None:
        """Return the cached scan for this state of the published tips, or None."""
        if published.damaged or published.tips.lacking:
            return None
        try:
            data = read_file(self._disk, self._layout.refs_file) or b""
            body, _, check = data.rpartition(b"check ")
            if check != b"%08x\n" % crc32(body):
                return None
            body, tip, tips = body.partition(_TIP.encode())
            head, sign, stamp, counts, *names = body.decode("ascii").splitlines()
        except (errors.StorageError, ValueError):
            return None
        if head != _HEAD or stamp != f"published {published.stamp}":
            return None
        if not all(map(is_ref_name, names)):
            return None
        _, index, branches_dir = sign.split(" ")
        _, refs, branches = counts.split(" ")
        cloned = ClonedTips(tip + tips) if published.stamp is None else None
        return Scan(names, int(refs), int(branches), (index, branches_dir), cloned)

    def _save(self, scan: Scan, stamp: object) -> None:
        published = self._journal.published
        if scan.sign is None or scan.published <= ALWAYS_READ:
            return
        if published.damaged or published.tips.lacking:
            return
        lines = [
            _HEAD,
            f"sign {' '.join(scan.sign)}",
            f"published {stamp}",
            f"counts {scan.published} {scan.branches}",
            *sorted(scan.unsettled),
        ]
        body = ("\n".join(lines) + "\n").encode("ascii")
        body += b"" if scan.cloned is None else scan.cloned.lines
        data = body + b"check %08x\n" % crc32(body)
        scratch = self._layout.tmp_dir
        try:
            replace_file(self._disk, self._layout.refs_file, data, durable=False, scratch=scratch)
        except errors.StorageError:
            return  # a read-only repository: all refs are read each time


def change_stamp(disk: Disk, layout: Layout) -> tuple[str, str] | None:
    """Return a stamp that changes when git changes files, or branches come or go.

    None means that git's index changed a moment ago or has no exact time, so that no stamp is reliable.
    """
    try:
        git = disks.git.git_dir(disk, layout.root)
    except errors.StorageError:
        git = None
    seen = "none" if git is None else _text(stamp(disk, os.path.join(git, "index")))
    return None if seen is None else (seen, branches_stamp(disk, layout))


def branches_stamp(disk: Disk, layout: Layout) -> str:
    """Return the second half of the stamp.

    It also changes when Trace adds or removes a branch.
    """
    result = disk.stat(layout.branches_dir)
    if result is None:
        return "none"
    return f"{result.st_dev}-{result.st_ino}-{result.st_mtime_ns}-{result.st_ctime_ns}"


def _text(seen: object) -> str | None:
    if isinstance(seen, tuple):
        return "-".join(map(str, seen))
    return "none" if seen is None else None
