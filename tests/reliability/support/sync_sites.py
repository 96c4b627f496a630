"""Every place in the source that asks for a sync, found by reading it.

Rule: a place is named as the log of a disk names it (`calling_site`): a call of `Disk.sync` or `Disk.sync_directory`,
or of one of the functions of the seam that make such calls, once for each that it may come to.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import trace_store

PACKAGE = Path(trace_store.__file__).parent
SEAM = "disk.files"
ASIDE = ("testing", "capture")
"""Test helpers, and the settings of other programs: neither is part of a repository's durability."""
SYNCS = ("sync", "sync_directory")


@dataclass(frozen=True)
class Place:
    """A call that leads to a sync.

    Attributes:
        module: without the package.
        function: its qualified name.
        lines: first and last line of the call.
        within: which function of the seam is called, with what syncs in there: a chain of functions; "" for none.
        text: the call.
    """

    module: str
    function: str
    lines: tuple[int, int]
    within: tuple[str, ...]
    text: str

    @property
    def name(self) -> str:
        """Says which place it is, however the lines move."""
        inner = "".join(f" > {each}" for each in self.within)
        return f"{self.module} {self.function}: {self.text}{inner}"

    def is_at(self, site: str) -> bool:
        """Tell whether a site of a log is this place."""
        place, _, rest = site.partition(" ")
        function, *within = rest.split(" > ")
        module, _, line = place.rpartition(":")
        return (
            (module, function.replace(".<locals>", "")) == (self.module, self.function)
            and self.lines[0] <= int(line) <= self.lines[1]
            and _chain(within) == self.within
        )


def _chain(within: list[str]) -> tuple[str, ...]:
    """Return which functions a sync is in; one that calls itself counts once."""
    names = [each.partition(":")[0] for each in within]
    return tuple(name for at, name in enumerate(names) if names[at - 1 : at] != [name])


def places() -> list[Place]:
    """Return every place in the library that may ask for a sync."""
    chains = _chains_of_seam()
    return [
        place
        for path in sorted(PACKAGE.rglob("*.py"))
        if (module := _module_of(path)) != SEAM and module.partition(".")[0] not in ASIDE
        for place in _places_in(module, path.read_text("utf-8"), chains)
    ]


def _module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _chains_of_seam() -> dict[str, list[tuple[str, ...]]]:
    """Return for each disk function its call chains to a sync."""
    tree = ast.parse((PACKAGE / "disk/files.py").read_text("utf-8"))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    chains: dict[str, list[tuple[str, ...]]] = {}

    def chains_of(name: str) -> list[tuple[str, ...]]:
        if name not in chains:
            chains[name] = []
            for call in _calls(functions[name]):
                if _is_sync(call):
                    chains[name].append((name,))
                elif (called := _name(call)) in functions and called != name:
                    chains[name] += [(name, *chain) for chain in chains_of(called)]
        return chains[name]

    return {name: found for name in functions if (found := chains_of(name))}


def _places_in(
    module: str, source: str, chains: dict[str, list[tuple[str, ...]]]
) -> Iterator[Place]:
    if not any(f"{name}(" in source for name in (*SYNCS, *chains)):
        return
    for function, call in _named_calls(ast.parse(source), ""):
        found = [()] if _is_sync(call) else chains.get(_name(call), []) if _is_durable(call) else []
        lines = (call.lineno, call.end_lineno or call.lineno)
        for chain in found:
            yield Place(module, function, lines, chain, ast.unparse(call))


def _named_calls(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
    """Yield each call with the qualified name of the function that it is in."""
    for child in ast.iter_child_nodes(node):
        inner = function
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            inner = ".".join(filter(None, (function, child.name)))
        if isinstance(child, ast.Call):
            yield function, child
        yield from _named_calls(child, inner)


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (each for each in ast.walk(node) if isinstance(each, ast.Call))


def _name(call: ast.Call) -> str:
    function = call.func
    return function.id if isinstance(function, ast.Name) else ""


def _is_sync(call: ast.Call) -> bool:
    """Tell whether a call is one of a disk's syncs; those of a store, a journal or a transaction lead to one."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in SYNCS:
        return False
    return ast.unparse(function.value).rpartition(".")[2].endswith("disk")


def _is_durable(call: ast.Call) -> bool:
    """Return True if a written file must be durable; a new empty file needs no sync."""
    for word in call.keywords:
        if word.arg == "durable" and isinstance(word.value, ast.Constant) and not word.value.value:
            return False
    return _name(call) != "create_file" or len(call.args) > 2
