"""The fuzz targets, one row each.

A target is a function of bytes that returns, or fails the test: every error that a reader documents is part of its
answer, and caught in the target; every other one is a finding, as are a wrong answer, a hang and memory without bound.

Rule: nothing of the library is imported here, so that a fuzzer can instrument it first.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import NamedTuple

SECONDS_AN_INPUT = 20
"""Longer than any input takes on a busy machine; anything longer is a hang."""
MEGABYTES = 2048

FORMATS = (
    *(
        "agent-trace",
        "ai-sdk",
        "aider",
        "atif",
        "chats",
        "claude-code",
        "cline",
        "cline-ui",
        "codex",
    ),
    *("codex-exec", "continue", "copilot", "crush", "cursor", "dagent", "droid", "entire"),
    *("gemini", "goose"),
    "mini-swe-agent",
    *("opencode", "pi", "pydantic-ai", "qwen-code", "swe-agent"),
)
"""Formats with a reader of their own; the six of chats in the shape of a provider have one together."""


class Target(NamedTuple):
    """What is fuzzed.

    Attributes:
        module, function: where the check is.
        watched: the modules, or packages, whose coverage guides the fuzzer.
        longest: how many bytes an input has at most.
        json: whether inputs are JSON, which is changed as such.
        format: another argument of the check.
    """

    module: str
    function: str
    watched: tuple[str, ...]
    longest: int = 4096
    json: bool = False
    format: str = ""

    def check(self) -> Callable[[bytes], None]:
        """Return the function; its module is imported now."""
        found = getattr(
            importlib.import_module(f"tests.fuzzing.support.{self.module}"), self.function
        )
        return functools.partial(found, self.format) if self.format else found


_MODULES = {"cline-ui": "cline", "continue": "continue_dev"}


def _importer(name: str) -> Target:
    own = _MODULES.get(name, name.replace("-", "_"))
    watched: tuple[str, ...] = (
        f"importers.formats.{own}",
        "importers.json_records",
    )
    if name not in ("chats", "claude-code"):
        watched += ("importers.turns", "importers.turn_plan")
    return Target("importing", "transcript", watched, 32_768, name != "aider", name)


TARGETS: dict[str, Target] = {
    "decoder": Target("decoding", "decoder", ("objects",)),
    "pack": Target("containers", "pack", ("odb",), 16_384),
    "pack-index": Target("containers", "pack_index", ("odb.pack_index", "odb.index_scan")),
    "journal": Target("containers", "journal", ("journal", "objects.mini_msgpack"), 16_384),
    "revision": Target("texts", "revision", ("revision", "ref_names", "ident"), 200),
    "bundle": Target("containers", "bundle", ("bundles", "odb.ingest"), 16_384),
    "compile-index": Target("decoding", "records", ("context.compile_index",)),
    "config": Target("texts", "config", ("config",), 1024),
    "documents": Target("texts", "documents", ("providers", "objects.parts"), json=True),
    "local-file": Target(
        "texts", "local_file", ("journal", "refs", "commit_table", "config"), 8192
    ),
    **{f"import-{name}": _importer(name) for name in FORMATS},
    "import-database": Target(
        "importing", "opencode_database", ("importers.formats.opencode",), 65_536
    ),
}
