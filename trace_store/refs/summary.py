"""How all refs stand, found out by looking at few of them.

    refs 1
    sign 66312-… 66312-…
    published (66312, …)
    counts 10002 10000
    refs/heads/main
    …
    check 1c8e02f7

Rule: a ref is *settled* when its files are one tip, the one that this working copy has published, and the commit is
here. Where there are many refs, the file `cache/refs` names those that are not settled, with a sign of the
surroundings and the state of `local/published` that this was found under. While both are as they were, the others are
settled still, and only those named, those that journals have moved since, and the branch at hand are looked at. What
is told of a ref is always what its files say now. The file is derived: without it all refs are looked at.
"""

from __future__ import annotations

from zlib import crc32

from trace_store import errors
from trace_store.files import read_file, replace_file
from trace_store.journal.published import stamp_of
from trace_store.ref_names import is_ref_name
from trace_store.refs.change_stamp import sign_of, sign_of_branches
from trace_store.refs.names import BRANCHES
from trace_store.refs.resolution import unexplained

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from trace_store.files import Disk
    from trace_store.journal.journal import Journal
    from trace_store.journal.published import Published
    from trace_store.layout import Layout
    from trace_store.oid import ObjectId
    from trace_store.refs.tips import TipFiles

    Tips = Sequence[ObjectId]

FEW = 32
"""Up to so many refs are looked at each time, which takes as long as to read what was found before."""
_HEAD = "refs 1"


class Standing:
    """How the refs stand.

    Attributes:
        moved: what something else moved: (name, what this working copy last wrote, what it is now). The next seal
            accepts these, after which they are no longer told.
        diverged: refs with several tips, and those tips.
        incomplete: refs with a tip that is not here.
        branch_count: how many branches there are.
    """

    __slots__ = ("branch_count", "diverged", "incomplete", "moved")

    def __init__(self) -> None:
        self.moved: list[tuple[str, ObjectId | None, ObjectId | None]] = []
        self.diverged: dict[str, tuple[ObjectId, ...]] = {}
        self.incomplete: list[str] = []
        self.branch_count = 0


class Look:
    """What was found when all refs were looked at, under one state of what is published.

    Attributes:
        unsettled: the names of the refs that were not settled.
        published: how many refs had published tips.
        branches: how many of them are branches.
        sign: of the surroundings; None when it would say nothing later.
    """

    __slots__ = ("branches", "published", "sign", "unsettled")

    def __init__(
        self, unsettled: Iterable[str], published: int, branches: int, sign: tuple[str, str] | None
    ) -> None:
        self.unsettled = frozenset(unsettled)
        self.published = published
        self.branches = branches
        self.sign = sign


class Overview:
    """Looks at the refs of one repository, and remembers what it saw."""

    __slots__ = ("_contains", "_disk", "_files", "_journal", "_layout")

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

    def look(self, *, fully: bool = False) -> Look:
        """Return which refs are not settled; called under the store's mutex, with the journal up to date.

        With `fully` nothing is taken from what was seen before.
        """
        published = self._journal.published
        sign = sign_of(self._disk, self._layout)
        known = None if fully else self._remembered(published)
        if known is not None and sign is not None and known.sign == sign:
            return known
        files = dict(self._files.iterate())
        tips = published.tips.all()
        unsettled = [
            name
            for name in {**tips, **files}
            if not self._is_settled(files.get(name, ()), tips.get(name, ()))
        ]
        branches = sum(name.startswith(BRANCHES) for name in tips)
        look = Look(unsettled, len(tips), branches, sign)
        self._remember(look, published.stamp)
        return look

    def standing(self, head: object, tips_of: Callable[[str], tuple[ObjectId, ...]]) -> Standing:
        """Return how the refs stand.

        Args:
            head: what HEAD names.
            tips_of: returns the tips of a ref.
        """
        look = self.look()
        journal, found = self._journal, Standing()
        known, folds = journal.published.tips, journal.fold.refs
        wanted = self._wanted(look, head)
        found.branch_count = look.branches
        for name in sorted(wanted):
            tips, before = tips_of(name), known.get(name, ())
            if name.startswith(BRANCHES):
                found.branch_count += bool(tips) - bool(before)
            if len(tips) > 1:
                found.diverged[name] = tips
            if not all(map(self._contains, tips)):
                found.incomplete.append(name)
            here = self._files.read(name)
            if set(here) != set(before) and unexplained(here, before, folds.get(name)):
                found.moved.append((name, before[0] if before else None, tips[0] if tips else None))
        if journal.published.stamp is None:
            found.moved = []  # a fresh clone: nothing was written here yet
        return found

    def naming(
        self,
        commits: Iterable[ObjectId],
        head: object,
        tips_of: Callable[[str], tuple[ObjectId, ...]],
    ) -> dict[ObjectId, list[str]]:
        """Return for each of some commits the names of the refs whose own value it is, sorted.

        Args:
            commits: their ids.
            head: what HEAD names.
            tips_of: returns the tips of a ref.
        """
        # This comes first: a table that is not right is found out by it.
        named = self._journal.published.tips.naming(commits)
        wanted = self._wanted(self.look(), head)
        found = {
            oid: [name for name in names if name not in wanted] for oid, names in named.items()
        }
        for name in wanted:
            tips = tips_of(name)
            if tips and tips[0] in found:
                found[tips[0]].append(name)
        return {oid: sorted(names) for oid, names in found.items()}

    def values(
        self, head: object, tips_of: Callable[[str], tuple[ObjectId, ...]]
    ) -> dict[str, ObjectId]:
        """Return the value of each ref, unsorted; arguments as in `naming`."""
        published = self._journal.published.tips.all()
        wanted = self._wanted(self.look(), head)
        found = {name: tips[0] for name, tips in published.items() if tips and name not in wanted}
        found.update((name, tips[0]) for name in wanted if (tips := tips_of(name)))
        return found

    def note(self, look: Look, before: Published, changes: dict[str, tuple[ObjectId, ...]]) -> None:
        """Remember a look beyond a seal, which has written files and published them.

        Args:
            look: what was seen before.
            before: what was published then.
            changes: the refs of which something else is published now.
        """
        stamp = stamp_of(self._disk, self._layout.published_file)
        if look.sign is None or stamp is None:
            return
        came = {name: bool(tips) - bool(before.tips.get(name)) for name, tips in changes.items()}
        tips = {**{name: before.tips.get(name) for name in look.unsettled}, **changes}
        unsettled = [n for n in tips if not self._is_settled(self._files.read(n), tips[n])]
        published = look.published + sum(came.values())
        branches = look.branches + sum(n for name, n in came.items() if name.startswith(BRANCHES))
        sign = look.sign[0], sign_of_branches(self._disk, self._layout)
        self._remember(Look(unsettled, published, branches, sign), stamp)

    def forget(self) -> None:
        """Let the next who asks look at all refs."""
        self._disk.remove(self._layout.refs_file)

    def _wanted(self, look: Look, head: object) -> set[str]:
        """Return the names of the refs that have to be looked at."""
        folds = self._journal.fold.refs
        wanted = {*look.unsettled, *folds, *([head] if isinstance(head, str) else ())}
        if len(wanted) > FEW:
            self._journal.published.tips.all()  # one by one they would take longer
        return wanted

    def _is_settled(self, files: Tips, published: Tips) -> bool:
        if not files and not published:
            return True  # there is none any more
        return len(files) == 1 and [*files] == [*published] and self._contains(files[0])

    def _remembered(self, published: Published) -> Look | None:
        """Return what was found under this state of what is published, if that is known."""
        if published.stamp is None or published.damaged or published.tips.lacking:
            return None
        try:
            data = read_file(self._disk, self._layout.refs_file) or b""
            body, _, check = data.rpartition(b"check ")
            if check != b"%08x\n" % crc32(body):
                return None
            head, sign, stamp, counts, *names = body.decode("ascii").splitlines()
        except (errors.StorageError, ValueError):
            return None
        if head != _HEAD or stamp != f"published {published.stamp}":
            return None
        if not all(map(is_ref_name, names)):
            return None
        _, index, branches_dir = sign.split(" ")
        _, refs, branches = counts.split(" ")
        return Look(names, int(refs), int(branches), (index, branches_dir))

    def _remember(self, look: Look, stamp: object) -> None:
        published = self._journal.published
        if look.sign is None or look.published <= FEW or stamp is None:
            return
        if published.damaged or published.tips.lacking:
            return
        lines = [
            _HEAD,
            f"sign {' '.join(look.sign)}",
            f"published {stamp}",
            f"counts {look.published} {look.branches}",
            *sorted(look.unsettled),
        ]
        body = ("\n".join(lines) + "\n").encode("ascii")
        data = body + b"check %08x\n" % crc32(body)
        scratch = self._layout.tmp_dir
        try:
            replace_file(self._disk, self._layout.refs_file, data, durable=False, scratch=scratch)
        except errors.StorageError:
            return  # a read-only repository: all refs are looked at each time
