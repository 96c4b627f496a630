"""All kinds of damage to a small repository, one at a time, and their outcomes.

    python -m tests.reliability.support.damage             a sample, as the suite does it
    python -m tests.reliability.support.damage --all       every case

Each case is written over a sound copy, looked at through the library as a reader would, and taken back.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.reliability.support.small_repository import IDEA, MAIN, build
from trace_store.base.oid import ObjectId
from trace_store.context.compiler import ContextCompiler
from trace_store.errors import TraceError
from trace_store.history.log import log
from trace_store.journal.frames import scan
from trace_store.maintenance.fsck import check_derived, fsck
from trace_store.odb.pack import FRAME, HEADER
from trace_store.store.store import Store

BLOCK_BYTES = 512
SLOW_SECONDS = 5.0
"""A case that takes longer counts as one that hangs: a sound look takes some thousandths of a second."""

MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
"""Where a case is looked at soonest."""

NAMED, REFUSED, MENDED, HARMLESS = "named", "refused", "mended", "harmless"
TEXT = "unchecked text"
WRONG, DELETED, TRACEBACK, HANG, SILENT = "WRONG BYTES", "DELETED", "TRACEBACK", "HANG", "SILENT"
GOOD = (NAMED, REFUSED, MENDED, HARMLESS, TEXT)
BAD = (WRONG, DELETED, TRACEBACK, HANG, SILENT)
MEANINGS = {
    NAMED: "`fsck` names it; reads are right, or raise a documented error",
    REFUSED: "the repository is not opened, with a documented error",
    MENDED: "a derived or local file: taken for what it is, or made anew; all reads are right",
    HARMLESS: "all reads are right: the bytes mean nothing, or nobody reads them any more",
    TEXT: "text of the user's own that no checksum covers: settings, HEAD, what reflogs say",
}

_CONTENT = {"pack", "idx", "loose", "compile index", "commit table", "cache"}
"""Files that decide on no ref: whatever happens to them, a context or log is right or refused."""
_REMADE = {"compile index", "commit table", "cache", "idx", "published", "reflog", "HEAD"}

Change = dict[str, bytes | None]
"""The new content of files; None for one that goes."""


class Case(NamedTuple):
    """One damage."""

    sort: str
    file: str
    place: int
    change: Change


class Outcome(NamedTuple):
    """What became of a case."""

    case: Case
    verdict: str
    detail: str


def kind_of(file: str) -> str:
    """Return the kind of a file, for the table."""
    first, _, rest = file.partition("/")
    if first == "objects":
        return rest.rpartition(".")[2] if rest.startswith("pack/") else "loose"
    if file.startswith("index/"):
        return "commit table" if "commits." in file else "compile index"
    return {"logs": "reflog", "refs": "ref", "local": "published"}.get(first, first)


# --- which damages there are --------------------------------------------------------------------------------------


def cases(files: dict[str, bytes], *, every_bit: int, every_length: int) -> Iterator[Case]:
    """Yield the damages to these files.

    Args:
        files: content by path.
        every_bit, every_length: of how many bits, or lengths, one is taken; 1 for all.
    """
    bit = length = 0
    for file, data in files.items():
        for place in range(-bit % every_bit, 8 * len(data), every_bit):
            changed = bytearray(data)
            changed[place >> 3] ^= 1 << (place & 7)
            yield Case("bit", file, place, {file: bytes(changed)})
        bit += 8 * len(data)
        for place in range(-length % every_length, len(data), every_length):
            yield Case("length", file, place, {file: data[:place]})
        length += len(data)
        for start in range(0, len(data), BLOCK_BYTES):
            block = data[start : start + BLOCK_BYTES]
            if block.strip(b"\0"):
                zeroed = data[:start] + bytes(len(block)) + data[start + len(block) :]
                yield Case("block", file, start, {file: zeroed})
        yield Case("file", file, 0, {file: None})
        yield Case("longer", file, len(data), {file: data + b"\n"})
    yield from _swapped_files(files, every_length)
    yield from _swapped_entries(files)


def _swapped_files(files: dict[str, bytes], every: int) -> Iterator[Case]:
    named = [name for name in files if files[name] or name.startswith("refs/")]
    pairs = [(a, b) for at, a in enumerate(named) for b in named[at + 1 :] if files[a] != files[b]]
    alike = [(a, b) for a, b in pairs if kind_of(a) == kind_of(b)]
    others = [pair for pair in pairs if pair not in set(alike)][::every]
    for number, (one, other) in enumerate(alike + others):
        yield Case("swap", one, number, {one: files[other], other: files[one]})


def _swapped_entries(files: dict[str, bytes]) -> Iterator[Case]:
    for file, data in files.items():
        if file.endswith(".pack"):
            pieces: list[tuple[int, int]] = []
            start = HEADER.size
            while (size := FRAME.unpack_from(data, start)[0]) > 0:
                pieces.append((start, start + FRAME.size + size))
                start = pieces[-1][1]
        elif file.startswith("journal/"):
            pieces = [(frame.start, frame.end) for frame in scan(partial(_cut, data), 0, len(data))]
        else:
            continue
        for (a, b), (c, d) in ((p, q) for p in pieces for q in pieces if p[1] <= q[0]):
            changed = data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]
            if changed != data:
                yield Case("swap", file, a, {file: changed})


def _cut(data: bytes, start: int, size: int) -> bytes:
    return data[start : start + size]


# --- results of readers ---------------------------------------------------------------------------------------------


class Picture:
    """The readable content of a repository in parts; an error for unreadable ones."""

    def __init__(self, root: Path, oids: list[ObjectId] | None = None) -> None:
        self.parts: dict[str, Any] = {}
        self.findings: list[tuple[str, str]] = []
        self.refused: TraceError | None = None
        try:
            store = Store.open(str(root), durability="fast")
        except TraceError as error:
            self.refused = error
            return
        with store:
            for oid in sorted(store.objects.iterate()) if oids is None else oids:
                self._add(f"object {oid}", partial(store.objects.read, oid))
            self._add("refs", lambda: list(store.refs.iterate_tips()))
            self._add("HEAD", lambda: repr(store.refs.head()))
            contexts = ContextCompiler(store)
            for branch in (MAIN, IDEA):
                self._add(f"context {branch}", partial(_compiled, contexts, branch))
                self._add(f"log {branch}", partial(_logged, store, branch))
                self._add(f"reflog {branch}", partial(store.refs.reflog, branch))
            found = fsck(store, also=[check_derived])
            self.findings = [(finding.code, finding.what) for finding in found]

    def _add(self, name: str, ask: Callable[[], Any]) -> None:
        try:
            self.parts[name] = ask()
        except TraceError as error:
            self.parts[name] = error


def _compiled(contexts: ContextCompiler, branch: str) -> list[Any]:
    context = contexts.compile(branch)
    return [context.token_count, *((m.address, m.role, m.text) for m in context)]


def _logged(store: Store, branch: str) -> list[Any]:
    return [
        (entry.oid, entry.author, entry.time, entry.summary(60)) for entry in log(store, branch)
    ]


# --- one case after the other ---------------------------------------------------------------------------------------


class _EndlessError(BaseException):
    """Ends a look that has taken far too much of the processor."""


def _end(number: int, frame: object) -> None:
    raise _EndlessError


class Matrix:
    """A sound repository that is damaged again and again."""

    def __init__(self, folder: Path) -> None:
        self.root = build(folder)
        signal.signal(signal.SIGVTALRM, _end)
        sound = Picture(self.root)
        assert not sound.findings, sound.findings
        self.oids = [ObjectId.parse(n[7:]) for n in sound.parts if n.startswith("object ")]
        self.files = {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and "locks/" not in path.as_posix()
        }
        self.sound = Picture(self.root, self.oids)
        self.slowest = 0.0
        self._stamps = {name: _stamp(str(self.root / name)) for name in self.files}

    def outcome(self, case: Case) -> Outcome:
        """Do one damage, look, and take it back."""
        for file, data in case.change.items():
            path = self.root / file
            if data is None:
                path.unlink()
            else:
                path.write_bytes(data)
        present = {file for file in self.files if case.change.get(file, b"") is not None}
        start = time.process_time()  # others may have the processor meanwhile
        signal.setitimer(signal.ITIMER_VIRTUAL, 2 * SLOW_SECONDS)
        try:
            picture = Picture(self.root, self.oids)
        except _EndlessError:
            return Outcome(case._replace(change={}), HANG, "it did not end")
        except Exception as error:  # noqa: BLE001 - whatever it is, a user would see a traceback
            return Outcome(case._replace(change={}), TRACEBACK, f"{type(error).__name__}: {error}")
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            seconds = time.process_time() - start
            removed = self._restore(present)
        self.slowest = max(self.slowest, seconds)
        if seconds > SLOW_SECONDS:
            return Outcome(case._replace(change={}), HANG, f"{seconds:.1f} s")
        if removed:
            return Outcome(case._replace(change={}), DELETED, ", ".join(sorted(removed)))
        return Outcome(case._replace(change={}), *self._verdict(case, picture))

    def _verdict(self, case: Case, picture: Picture) -> tuple[str, str]:
        if picture.refused is not None:
            return REFUSED, picture.refused.code
        kinds = {kind_of(file) for file in case.change}
        differing: list[str] = []
        for name, right in self.sound.parts.items():
            found = picture.parts[name]
            if name.startswith("object ") and isinstance(found, bytes) and found != right:
                return WRONG, name
            if isinstance(found, TraceError) or found != right:
                differing.append(name)
            is_view = name.startswith(("context ", "log "))
            if (
                is_view
                and kinds <= _CONTENT
                and not isinstance(found, TraceError)
                and found != right
            ):
                return WRONG, name
        what = ", ".join(differing)
        if picture.findings:
            codes = sorted({code for code, _ in picture.findings})
            return NAMED, ", ".join(codes)
        if not differing:
            return (MENDED if kinds <= _REMADE else HARMLESS), ""
        if "reflog" in kinds and all(name.startswith("reflog ") for name in differing):
            return TEXT, what
        if kinds <= {"config", "HEAD", "reflog"} and not any(
            isinstance(picture.parts[name], TraceError) for name in differing
        ):
            return TEXT, what
        return SILENT, what

    def _restore(self, present: set[str]) -> set[str]:
        """Restore all files; return the deleted ones that cannot be rebuilt from others."""
        here: set[str] = set()
        root = str(self.root)
        stack = [root]
        while stack:
            for entry in os.scandir(stack.pop()):
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
                elif (name := entry.path[len(root) + 1 :]) in self.files:
                    here.add(name)
                    if _stamp(entry.path) != self._stamps[name]:
                        self._write(name)
                else:
                    os.unlink(entry.path)
        for name in self.files.keys() - here:
            self._write(name)
        gone = present - here
        return {file for file in gone if not file.startswith(("index/", "cache/"))}

    def _write(self, name: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.files[name])
        self._stamps[name] = _stamp(str(path))


def _stamp(path: str) -> tuple[int, ...]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, found.st_ino


def table(outcomes: list[Outcome]) -> str:
    """Return the table of outcome classes by sort of file and sort of damage."""
    lines: list[str] = []
    verdicts = [v for v in (*GOOD, *BAD) if v in GOOD or any(o.verdict == v for o in outcomes)]
    width = max(len(v) for v in verdicts)
    for title, key in (
        ("damage", lambda o: o.case.sort),
        ("file", lambda o: kind_of(o.case.file)),
    ):
        rows: dict[str, Counter[str]] = {}
        for outcome in outcomes:
            rows.setdefault(key(outcome), Counter())[outcome.verdict] += 1
        lines.append(f"{title:<14}{'cases':>9}" + "".join(f"{v:>{width + 2}}" for v in verdicts))
        for name, counts in sorted(rows.items()):
            cells = "".join(f"{counts[v]:>{width + 2},}" for v in verdicts)
            lines.append(f"{name:<14}{counts.total():>9,}{cells}")
        lines.append("")
    total = Counter(o.verdict for o in outcomes)
    lines.append(
        f"{'all':<14}{total.total():>9,}" + "".join(f"{total[v]:>{width + 2},}" for v in verdicts)
    )
    return "\n".join(lines)


def main() -> int:
    """Run the matrix and print its table; return 1 when anything is as it must not be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="every bit and every length")
    parser.add_argument("--bits", type=int, default=131, help="of so many bits take one")
    parser.add_argument("--lengths", type=int, default=53, help="of so many lengths take one")
    parser.add_argument("--minutes", type=float, default=0.0, help="stop then; the order is mixed")
    parser.add_argument("--show", default="", help="list the cases of this verdict")
    options = parser.parse_args()
    bits, lengths = (1, 1) if options.all else (options.bits, options.lengths)
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        matrix = Matrix(Path(folder))
        start = time.perf_counter()
        chosen = list(cases(matrix.files, every_bit=bits, every_length=lengths))
        if options.minutes:
            random.Random(0).shuffle(chosen)  # so that a partial run is a fair sample
        outcomes: list[Outcome] = []
        for case in chosen:
            outcomes.append(matrix.outcome(case))
            if options.minutes and time.perf_counter() - start > 60 * options.minutes:
                break
        seconds = time.perf_counter() - start
    print(table(outcomes))
    print(f"\n{len(outcomes):,} of {len(chosen):,} cases")
    print(
        f"{len(matrix.oids)} objects, {len(matrix.files)} files, {sum(map(len, matrix.files.values())):,} bytes;"
        f" {seconds:.0f} s, slowest case {matrix.slowest * 1000:.0f} ms"
    )
    for verdict, meaning in MEANINGS.items():
        print(f"  {verdict}: {meaning}")
    bad = [outcome for outcome in outcomes if outcome.verdict in BAD]
    for outcome in [o for o in outcomes if o.verdict == options.show] + bad[:200]:
        case = outcome.case
        print(f"{outcome.verdict}: {case.sort} {case.file} {case.place}: {outcome.detail}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
