"""The table of peers. A peer is loaded when it is first needed, so that one whose package is missing is only named."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from benchmarks.model import Unavailable

# Name: the module of this package, and the class in it with its arguments.
PEERS: dict[str, tuple[str, str, tuple[Any, ...]]] = {
    "trace": ("trace", "Trace", ()),
    "trace-32k": ("trace", "Trace", (32 * 1024,)),
    "trace-unpacked": ("trace", "Unpacked", ()),
    "sqlite": ("sqlite", "Plain", ()),
    "sqlite-addressed": ("sqlite", "Addressed", ()),
    "jsonl": ("jsonl", "JsonLines", ()),
    "lmdb": ("lightning", "Lightning", ()),
    "langgraph": ("langgraph_saver", "Saver", (False,)),
    "langgraph-delta": ("langgraph_saver", "Saver", (True,)),
    "floor": ("floor", "Floor", ()),
    "zstd": ("compressed", "Compressed", ()),
    "fts5": ("fulltext", "FullText", ()),
    "python": ("python", "Python", ()),
    "git": ("git", "Git", ()),
    "trace-tracked": ("tracked", "TrackedTrace", ()),
    "lines-tracked": ("tracked", "TrackedLines", ()),
    "trace-parted": ("parted", "PartedTrace", ()),
    "trace-decisions": ("decisions", "TraceDecisions", ()),
    "trail-decisions": ("decisions", "TrailDecisions", ()),
    "git-parted": ("parted", "PartedGit", ()),
    "git-aggressive": ("git", "Aggressive", ()),
    "git-loose": ("git", "Loose", ()),
    "pygit2": ("libgit", "Pygit2", ()),
    "dulwich": ("dulwich_git", "Dulwich", ()),
}


@functools.cache
def load(name: str) -> Any:
    """Return the peer.

    Raises:
        Unavailable: a package is not installed, or the peer says that it cannot run here.
    """
    module, class_name, arguments = PEERS[name]
    try:
        found = importlib.import_module(f"benchmarks.peers.{module}")
    except ImportError as error:
        raise Unavailable(f"not installed: {error.name or error}") from error
    return getattr(found, class_name)(*arguments)
