"""Transcripts of an agent at work, as long as wanted, made from source text and a seed.

A session works on one group of related files: it reads, searches, edits, runs tests, looks at diffs and logs, and
writes prose between. Two variants bound how much real work repeats itself: in the repetitive one files are read
again unchanged (about 17 % of all bytes are exact copies of an earlier tool result), in the other hardly ever (0.1 %).

Rule: everything comes from the generator's seed and the files found; no clock, no environment.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from typing import Any

from benchmarks.model import Turn
from benchmarks.sources import Corpus, Group
from benchmarks.workspace import Workspace

VARIANTS = ("repetitive", "varied")
SHORTEST_SESSION, LONGEST_SESSION = 300, 1500
TURN_CALLS = (3, 25)
READ_AGAIN_SHARE = 0.26
QUESTIONS = (
    "Please look at {name} in {file}: {line}",
    "{name} is slow for large inputs. Find out why and make it faster.",
    "The tests of {file} fail since yesterday. {line}",
    "Rename {name} and change all its callers.",
    "What does {name} do, and who calls it? {line}",
    "Add a test for {name} that covers the case where nothing is given.",
    "Go on.",
)


def turns(variant: str, seed: int, corpus: Corpus | None = None) -> Iterator[Turn]:
    """Yield messages without end.

    Args:
        variant: one of VARIANTS.
        seed: chooses everything that is left to chance.
        corpus: the source text; None takes what is installed.

    Raises:
        ValueError: no source files were found.
    """
    generator = random.Random(f"{seed} {variant}")
    for group in (corpus or Corpus.installed()).groups(generator):
        session = _Session(group, generator, variant == "repetitive")
        yield from islice(session.turns(), generator.randint(SHORTEST_SESSION, LONGEST_SESSION))


class _Session:
    """One session: the current state of its files, and past requests."""

    def __init__(self, group: Group, generator: random.Random, repetitive: bool) -> None:
        self._group = group
        self._generator = generator
        self._repetitive = repetitive
        self._workspace = Workspace(group, generator)
        self._reads: list[tuple[str, int, int]] = []
        self._prose = cycle(generator.sample(group.prose, len(group.prose)))
        self._names = cycle(generator.sample(group.names, len(group.names)))
        self._tools: list[Callable[[], tuple[str, dict[str, Any], str]]] = [
            self._read,
            self._search,
            self._edit,
            self._test,
            self._diff,
            self._log,
        ]
        self._weights = [46, 16, 16, 10, 4, 8]

    def turns(self) -> Iterator[Turn]:
        """Yield messages forever, or until each file was read once."""
        while self._repetitive or not self._workspace.all_read:
            yield self._turn("user", {"type": "text", "text": self._question()})
            for _ in range(self._generator.randint(*TURN_CALLS)):
                (tool,) = self._generator.choices(self._tools, self._weights)
                name, given, result = tool()
                call = f"toolu_{self._generator.getrandbits(96):024x}"
                arguments = json.dumps(given, ensure_ascii=False, separators=(",", ":"))
                yield self._turn(
                    "assistant",
                    {"type": "text", "text": self._explanation()},
                    {"type": "tool_call", "id": call, "name": name, "arguments": arguments},
                )
                answer = {"type": "tool_result", "call_id": call, "content": result}
                yield self._turn("tool", answer)
            yield self._turn("assistant", {"type": "text", "text": self._explanation()})

    def _turn(self, role: str, *content: dict[str, str]) -> Turn:
        number = self._generator.getrandbits(96)
        return {"id": f"msg_{number:024x}", "role": role, "content": list(content)}

    def _question(self) -> str:
        generator = self._generator
        return generator.choice(QUESTIONS).format(
            name=generator.choice(self._group.names),
            file=generator.choice(self._group.files).name,
            line=self._next_prose()[: generator.randint(40, 600)],
        )

    def _explanation(self) -> str:
        """Return 0.5 to 3 kB of descriptions of the files."""
        wanted = min(3000, 400 + int(self._generator.expovariate(1 / 900)))
        parts: list[str] = []
        while wanted > 0:
            part = self._next_prose()[:wanted]
            parts.append(part)
            wanted -= len(part) + 40
        return "\n\n".join(parts)

    def _next_prose(self) -> str:
        """Return a docstring: any, or each in turn when nothing is to come twice before all came once."""
        if self._repetitive:
            return self._generator.choice(self._group.prose)
        return next(self._prose)

    def _read(self) -> tuple[str, dict[str, Any], str]:
        generator = self._generator
        if self._repetitive and self._reads and generator.random() < READ_AGAIN_SHARE:
            path, start, count = generator.choice(self._reads)
        else:
            path, start, count = self._workspace.place_to_read(self._repetitive)
            self._reads.append((path, start, count))
        given = {"file_path": path, "offset": start + 1, "limit": count}
        return "Read", given, self._workspace.numbered(path, start, count)

    def _search(self) -> tuple[str, dict[str, Any], str]:
        name = self._generator.choice(self._group.names) if self._repetitive else next(self._names)
        return "Grep", {"pattern": name, "path": "."}, self._workspace.found(name)

    def _edit(self) -> tuple[str, dict[str, Any], str]:
        path, old, new, shown = self._workspace.edit()
        given = {"file_path": path, "old_string": old, "new_string": new}
        return "Edit", given, f"{path} was changed. Around the change it now says:\n{shown}"

    def _test(self) -> tuple[str, dict[str, Any], str]:
        path = self._workspace.any_path()
        return "Bash", {"command": f"pytest -q {path}"}, self._workspace.test_log(path)

    def _diff(self) -> tuple[str, dict[str, Any], str]:
        return "Bash", {"command": "git diff"}, self._workspace.diff(self._repetitive)

    def _log(self) -> tuple[str, dict[str, Any], str]:
        return "Bash", {"command": "tail -n 200 app.log"}, self._workspace.application_log()
