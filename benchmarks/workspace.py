"""The current files of a session, and the output of an agent's tools on them.

Rule: text only. What is read, found or changed is chosen with the session's generator, so the same seed gives the
same text.
"""

from __future__ import annotations

import random

from benchmarks.sources import Group

LONGEST_LINE = 400
FEWEST_LINES = 8
TYPICAL_LINES = 200
MOST_LINES = 1000
CONTEXT_LINES = 3
FOUND_LINES = 40
DIFF_HUNKS = 12


class Workspace:
    """Files that can be read, searched and changed."""

    def __init__(self, group: Group, generator: random.Random) -> None:
        self._generator = generator
        self._names = group.names
        self._paths = [file.name for file in group.files]
        self._lines = {file.name: file.text.splitlines() or [""] for file in group.files}
        self._unread = dict.fromkeys(self._paths, 0)
        self._hunks: list[str] = []
        self._second = generator.randrange(1_700_000_000, 1_760_000_000)

    @property
    def all_read(self) -> bool:
        """Whether every line of every file was read in turn."""
        return not self._unread

    def any_path(self) -> str:
        """Return one of the paths; the first are worked on most."""
        place = int(len(self._paths) * self._generator.random() ** 1.5)
        return self._paths[place]

    def place_to_read(self, again: bool) -> tuple[str, int, int]:
        """Return path, first line and number of lines.

        Args:
            again: whether any place will do; otherwise the files are read in turn, each from where reading had come
                to, and any place will do only once all was read.
        """
        generator = self._generator
        count = int(
            min(MOST_LINES, FEWEST_LINES + generator.lognormvariate(0, 1.2) * TYPICAL_LINES)
        )
        if again:
            path = self.any_path()
            total = len(self._lines[path])
            return path, (generator.randrange(total) // 50 * 50 if count < total else 0), count
        if not self._unread:
            path = self.any_path()
            return path, generator.randrange(len(self._lines[path])), count
        path = next(iter(self._unread))
        start = min(self._unread.pop(path), len(self._lines[path]) - 1)
        if start + count < len(self._lines[path]):
            self._unread[path] = start + count
        return path, start, count

    def numbered(self, path: str, start: int, count: int) -> str:
        """Return lines with their numbers before them."""
        lines = self._lines[path][start : start + count]
        return "\n".join(
            f"{n:6d}\t{line[:LONGEST_LINE]}" for n, line in enumerate(lines, start + 1)
        )

    def found(self, name: str) -> str:
        """Return the lines that hold a name, as a search prints them."""
        hits: list[str] = []
        for path in self._paths:
            for number, line in enumerate(self._lines[path], 1):
                if name in line:
                    hits.append(f"{path}:{number}:{line[:LONGEST_LINE]}")
                    if len(hits) == FOUND_LINES:
                        return "\n".join(hits)
        return "\n".join(hits) or "Nothing was found"

    def edit(self) -> tuple[str, str, str, str]:
        """Change a few lines of a file; return path, old text, new text and the place afterwards."""
        generator = self._generator
        path = self.any_path()
        lines = self._lines[path]
        start = generator.randrange(len(lines))
        old = lines[start : start + generator.randint(1, 10)]
        new = [self._changed(line) for line in old if generator.random() > 0.1]
        for _ in range(generator.randint(0, 4)):
            other = self._lines[generator.choice(self._paths)]
            new.insert(generator.randint(0, len(new)), generator.choice(other))
        before = lines[max(0, start - CONTEXT_LINES) : start]
        after = lines[start + len(old) : start + len(old) + CONTEXT_LINES]
        self._remember(path, start, before, old, new, after)
        lines[start : start + len(old)] = new
        if not lines:
            lines.append("")
        first = max(0, start - CONTEXT_LINES)
        shown = self.numbered(path, first, len(new) + 2 * CONTEXT_LINES)
        return path, "\n".join(old), "\n".join(new), shown

    def diff(self, again: bool) -> str:
        """Return the latest changes as a diff prints them; only those since the last diff unless `again`."""
        shown = self._hunks[-self._generator.randint(1, DIFF_HUNKS) :]
        if not again:
            self._hunks.clear()
        return "\n".join(shown) or "No changes"

    def test_log(self, path: str) -> str:
        """Return a test runner's output: progress, failures with source lines, a summary."""
        generator = self._generator
        out = ["=" * 28 + " test session starts " + "=" * 28]
        passed = generator.randint(3, 400)
        for done in range(0, passed, 60):
            out.append(f"{path} {'.' * min(60, passed - done)} [{100 * done // passed:3d}%]")
        failures = [generator.choice(self._names) for _ in range(generator.randint(0, 4))]
        for name in failures:
            lines = self._lines[path]
            start = generator.randrange(len(lines))
            out.append(f"{'_' * 30} test_{name} {'_' * 30}")
            out += [f"    {line[:LONGEST_LINE]}" for line in lines[start : start + 14]]
            got, wanted = generator.getrandbits(20), generator.getrandbits(20)
            out.append(f">       assert {name}({generator.getrandbits(12)}) == {wanted}")
            out.append(f"E       assert {got} == {wanted}")
            out.append(f"{path}:{start + 14}: AssertionError")
        out += [f"FAILED {path}::test_{name}" for name in failures]
        seconds = generator.random() * 90
        out.append(f"{len(failures)} failed, {passed} passed in {seconds:.2f}s")
        return "\n".join(out)

    def application_log(self) -> str:
        """Return lines of a program's log: times, places in the code, numbers."""
        generator = self._generator
        out: list[str] = []
        for _ in range(generator.randint(5, 120)):
            self._second += generator.randrange(4)
            level = generator.choice(("INFO", "INFO", "INFO", "DEBUG", "WARNING", "ERROR"))
            place = self.any_path().removesuffix(".py").replace("/", ".")
            name = generator.choice(self._names)
            out.append(
                f"{self._second}.{generator.randrange(1000):03d} {level} {place} {name}: "
                f"request={generator.getrandbits(48):012x} took {generator.random() * 900:.1f} ms"
            )
        return "\n".join(out)

    def _changed(self, line: str) -> str:
        """Return a line with one of its words become another name."""
        words = line.split(" ")
        place = self._generator.randrange(len(words))
        if words[place].isidentifier():
            words[place] = self._generator.choice(self._names)
        return " ".join(words)

    def _remember(
        self,
        path: str,
        start: int,
        before: list[str],
        old: list[str],
        new: list[str],
        after: list[str],
    ) -> None:
        around = len(before) + len(after)
        first = start - len(before) + 1
        head = f"@@ -{first},{len(old) + around} +{first},{len(new) + around} @@"
        body = [f" {line}" for line in before]
        body += [f"-{line}" for line in old] + [f"+{line}" for line in new]
        body += [f" {line}" for line in after]
        self._hunks.append("\n".join([f"--- a/{path}", f"+++ b/{path}", head, *body]))
