"""Workloads on a disk in memory, what they were told is done, and whether a power cut leaves that true.

A recording is a log of what the kernel was told, and after each step what the repository holds. Whatever a power cut
leaves must hold what it did after the last step that was durable, or after a later one, up to the one that was cut
off; and it must be possible to go on with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.store.support.histories import append
from trace_store.errors import RepositoryNotFoundError, TraceError
from trace_store.ident import FixedClock
from trace_store.layout import TEMPORARY_PREFIX
from trace_store.maintenance.checking import INFO, fsck
from trace_store.maintenance.sealing import seal
from trace_store.odb import ObjectDatabase
from trace_store.oid import ObjectId
from trace_store.store import Store
from trace_store.testing import Image, Kernel, PowerCutDisk
from trace_store.testing.images import Event
from trace_store.testing.power_cuts import image_of, kill

FOLDER, ELSEWHERE = "/work", "/elsewhere"
ROOT = "/work/.trace"
AFTER = "refs/heads/after"
START = 1_700_000_000_000
TORN = "root-file-changed"
"""What `fsck` says of `.gitignore` when part of it is there; all else that it merely mentions is harmless."""
DERIVED = frozenset({"tmp", "locks"})

Tips = tuple[tuple[str, tuple[str | ObjectId, ...]], ...]


@dataclass(frozen=True)
class Holding:
    """What somebody who opens the repository finds in it, and beside it.

    Attributes:
        refs: what HEAD names, with the default branch, and the tips of every ref, own tip first; None when there is
            no repository.
        objects: the ids of all that can be read.
        files: what other files there are, and what they hold.
        faults: what is wrong.
    """

    refs: Tips | None
    objects: frozenset[ObjectId] = frozenset()
    files: frozenset[tuple[str, bytes]] = frozenset()
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """What was acknowledged.

    Attributes:
        name: says which step it is.
        place: how much of the log was there by then.
        holding: what the repository held.
        durable: whether it is to survive a power cut.
        gradual: whether refs may be found anywhere on their way from the step before.
        drops: whether objects may go in it.
        settles: whether what others had written before, unsynced, is durable with it.
        promised: the objects that are acknowledged by then.
    """

    name: str
    place: int
    holding: Holding
    durable: bool = True
    gradual: bool = False
    drops: bool = False
    settles: bool = True
    promised: frozenset[ObjectId] = frozenset()


class Killed(BaseException):
    """The process is killed here."""


class MortalDisk(PowerCutDisk):
    """A disk that lets its user be killed at the n-th thing that is done, counted from 0; -1 is never."""

    def __init__(self, image: Image, *, without: str = "", dies_at: int = -1) -> None:
        super().__init__(image, without=without)
        self.dies_at = dies_at

    def _note(self, event: Event) -> None:
        if len(self.log) == self.dies_at:
            raise Killed
        super()._note(event)


class Recording:
    """A disk, and what was acknowledged of what was done on it.

    Attributes:
        disk: where it is done.
        before: what was on it.
        steps: what was acknowledged, after a first one that says what was there.
        judged_from: how much of the log is there when the first power cut is of interest.
    """

    def __init__(
        self,
        image: Image,
        *,
        without: str = "",
        dies_at: int = -1,
        disk: PowerCutDisk | None = None,
    ) -> None:
        self.disk = disk or MortalDisk(image, without=without, dies_at=dies_at)
        self.judged_from = 0
        self._unsure: frozenset[ObjectId] = frozenset()
        self.before = image_of(self.disk)
        self.begin = len(self.disk.log)
        self.clock = FixedClock(START)
        held = holding_of(self.before)
        self.steps = [Step("start", self.begin, held, promised=held.objects)]

    def open(self, *, durability: str = "durable") -> Store:
        """Open the repository once more."""
        return Store.open(ROOT, clock=self.clock, disk=self.disk, durability=durability)

    def done(
        self,
        name: str,
        *,
        durable: bool = True,
        gradual: bool = False,
        drops: bool = False,
        settles: bool = True,
    ) -> None:
        """Note that a step was acknowledged."""
        found = holding_of(image_of(self.disk))
        place = len(self.disk.log)
        promised = found.objects - self._unsure
        self.steps.append(Step(name, place, found, durable, gradual, drops, settles, promised))

    def killed(self) -> None:
        """Note that who was at work was killed: what he has not acknowledged may be there or not."""
        if isinstance(self.disk, MortalDisk):
            self.disk.dies_at = -1
        kill(self.disk)
        self.judged_from = len(self.disk.log)
        known = [step for step in self.steps if step.durable][-1].promised
        self._unsure = holding_of(image_of(self.disk)).objects - known
        self.done("killed", durable=False, gradual=True)

    def promise(self, oid: ObjectId) -> None:
        """Note that somebody was told that an object is stored."""
        self._unsure -= {oid}

    def log(self) -> list[Event]:
        """Return what was done since the beginning."""
        return self.disk.log[self.begin :]


Workload = Callable[[Recording], None]


def prepared(*, repository: bool = True) -> Image:
    """Return a disk with a folder, and in it an empty repository as git hands it on: without empty directories."""
    disk = PowerCutDisk()
    disk.make_directory(FOLDER)
    if repository:
        Store.init(FOLDER, disk=disk, clock=FixedClock(START)).close()
        for name in ("objects/pack", "objects", "refs"):
            disk.remove_directory(f"{ROOT}/{name}")
    return image_of(disk)


def record(workload: Workload, image: Image, *, without: str = "") -> Recording:
    """Return what a workload does on a disk."""
    recording = Recording(image, without=without)
    workload(recording)
    return recording


def record_killed(
    first: Workload, second: Workload, image: Image, at: int, *, without: str = ""
) -> Recording | None:
    """Return what another process does after one was killed at the n-th thing it did; None when it was done by then."""
    recording = Recording(image, without=without, dies_at=at)
    try:
        first(recording)
    except Killed:
        recording.killed()
        second(recording)
        return recording
    return None


@dataclass
class Count:
    """What was gone through.

    Attributes:
        cuts: points at which the power was cut.
        states: what that left, each way once for each point.
        distinct: how many of them were different, and opened.
        bounded: points with more choices than were made.
    """

    cuts: int = 0
    states: int = 0
    distinct: int = 0
    bounded: int = 0
    violations: list[str] = field(default_factory=list)


class Enumeration:
    """Goes through what power cuts leave, and remembers what was found in states it has seen."""

    def __init__(self, *, limit: int = 256, thorough: int = 20) -> None:
        self.limit = limit
        self.thorough = thorough
        self.count = Count()
        self._seen: dict[object, Holding] = {}

    def violations(self, recording: Recording) -> Iterator[str]:
        """Yield what is wrong, after every prefix of what was done."""
        kernel = Kernel(recording.before, limit=self.limit)
        events = recording.log()
        steps = recording.steps
        for place in range(recording.begin, recording.begin + len(events) + 1):
            if place > recording.begin:
                kernel.tell(events[place - recording.begin - 1])
            if place < recording.judged_from:
                continue
            at = max(i for i, step in enumerate(steps) if step.place <= place)
            # What a change that is not synced may leave includes what was before it.
            judged: set[object] = set()
            for number, image in enumerate(kernel.states()):
                self.count.states += 1
                key = image.key(DERIVED)
                if (key, number == 0) in judged:
                    continue
                judged.add((key, number == 0))
                found = self._look(key, image)
                for fault in judge(found, steps, at, killed=number == 0):
                    said = f"{fault} [cut {place} in {_cut_off(steps, at)}]"
                    self.count.violations.append(said)
                    yield said
        self.count.cuts += kernel.cuts
        self.count.bounded += kernel.bounded

    def _look(self, key: object, image: Image) -> Holding:
        found = self._seen.get(key)
        if found is None:
            self.count.distinct += 1
            found = self._seen[key] = holding_of(
                image, goes_on=True, thorough=self.count.distinct % self.thorough == 0
            )
        return found


def _cut_off(steps: list[Step], at: int) -> str:
    return steps[at + 1].name if at + 1 < len(steps) else f"nothing after {steps[at].name}"


def holding_of(image: Image, *, goes_on: bool = False, thorough: bool = False) -> Holding:
    """Return what is found on a disk; with `goes_on`, a commit and a seal are tried as well."""
    disk = PowerCutDisk(image)
    files = frozenset(
        (path, image.files[n])
        for path, n in image.paths(frozenset({".trace"}))
        if n in image.files
        and path.startswith(FOLDER)
        and not path.endswith(".tmp")
        and TEMPORARY_PREFIX not in path
    )
    try:
        with Store.open(ROOT, disk=disk, clock=FixedClock(START + 10**9)) as store:
            refs, objects, faults = _contents(store)
    except RepositoryNotFoundError:
        return Holding(None, files=files)
    except TraceError as error:
        return Holding((), files=files, faults=(f"does not open: {error.code}: {error}",))
    if goes_on and not faults:
        faults = [f"going on: {fault}" for fault in _go_on(disk, refs, objects, thorough=thorough)]
    return Holding(refs, objects, files, tuple(faults))


def _contents(store: Store, *, check: bool = True) -> tuple[Tips, frozenset[ObjectId], list[str]]:
    head, settings = str(store.refs.head_target()), str(store.config.get("default_branch"))
    refs: Tips = (("HEAD", (head, settings)), *sorted(store.refs.iterate_tips()))
    objects = frozenset(store.objects.iterate())
    if isinstance(store.objects, ObjectDatabase):
        for taking in store.objects.quarantine.takings():
            objects |= {*taking.packs.iterate(), *taking.loose.iterate()}
    faults = [
        f"fsck: {finding.code}: {finding.what}: {finding.detail}"
        for finding in (fsck(store) if check else ())
        if finding.severity != INFO or finding.code == TORN
    ]
    return refs, objects, faults


def _go_on(
    disk: PowerCutDisk, refs: Tips, objects: frozenset[ObjectId], *, thorough: bool
) -> Iterator[str]:
    """Yield what is wrong when work goes on: a commit, a seal, and what is there afterwards."""
    try:
        with Store.open(ROOT, disk=disk, clock=FixedClock(START + 2 * 10**9)) as store:
            tip = append(store, "after", AFTER, durability="durable")
        for sealed in (False, True) if thorough else (False,):
            with Store.open(ROOT, disk=disk, clock=FixedClock(START + 3 * 10**9)) as store:
                if sealed:
                    seal(store)
                now, held, faults = _contents(store, check=sealed)
            yield from faults
            if dict(now) != {**dict(refs), AFTER: (tip,)}:
                yield f"refs were {_short(refs)}, then {_short(now)}"
            if not held >= objects:
                yield f"{len(objects - held)} objects are gone"
    except TraceError as error:
        yield f"{error.code}: {error}"


def judge(found: Holding, steps: list[Step], at: int, *, killed: bool) -> Iterator[str]:
    """Yield what is wrong with what was found after a cut behind step `at`.

    After a kill, which leaves all that was done, everything acknowledged is there however durable it was to be.
    """
    yield from found.faults
    since = at if killed else max(i for i in range(at + 1) if steps[i].durable)
    settled = max(i for i in range(since + 1) if steps[i].durable and steps[i].settles)
    allowed = steps[settled : at + 2]
    if not any(_is_as(found, each) for each in allowed) and not (
        len(allowed) > 1 and allowed[-1].gradual and _is_between(found, allowed)
    ):
        were = " or ".join(_short(each.holding.refs) for each in allowed)
        yield f"refs are {_short(found.refs)}, not {were}"
    if not any(each.drops for each in allowed) and not found.objects >= steps[since].promised:
        yield f"{len(steps[since].promised - found.objects)} acknowledged objects are gone"
    may = {file for each in allowed for file in each.holding.files}
    must = set.intersection(*({path for path, _ in each.holding.files} for each in allowed))
    yield from (
        f"{path} holds what it never did" for path, data in found.files if (path, data) not in may
    )
    yield from (f"{path} is gone" for path in must - {path for path, _ in found.files})


def _is_as(found: Holding, step: Step) -> bool:
    return found.refs == step.holding.refs


def _is_between(found: Holding, steps: list[Step]) -> bool:
    """Tell whether each ref has a value that it had, or passed through."""
    if found.refs is None or any(step.holding.refs is None for step in steps):
        return False
    now = dict(found.refs)
    for name in {name for step in steps for name, _ in step.holding.refs or ()} | set(now):
        values = [dict(step.holding.refs or ()).get(name, ()) for step in steps]
        if now.get(name, ()) not in values and not all(
            tip in steps[-1].holding.objects for tip in now.get(name, ())
        ):
            return False
    return True


def _short(refs: Tips | None) -> str:
    if refs is None:
        return "no repository"
    return (
        "{"
        + ", ".join(
            f"{n.removeprefix('refs/')}: {'+'.join(str(t)[:8] for t in tips)}" for n, tips in refs
        )
        + "}"
    )
