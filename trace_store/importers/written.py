"""What putting a plan into a store did."""

from __future__ import annotations

from trace_store.oid import ObjectId
from trace_store.values import field, mutable


@mutable
class Written:
    """What a writer did.

    Attributes:
        commits: how many are new.
        messages: how many messages those create.
        calls, results: how many calls of tools are in these, and how many results.
        present: how many commits of the plan were here already.
        shared: how many of these are another session's, which this one was copied from.
        branches: the refs of the session, with their values.
        trashed: refs that keep what a branch was moved over.
    """

    commits: int = 0
    messages: int = 0
    calls: int = 0
    results: int = 0
    present: int = 0
    shared: int = 0
    branches: dict[str, ObjectId] = field(default_factory=dict)
    trashed: list[str] = field(default_factory=list)
