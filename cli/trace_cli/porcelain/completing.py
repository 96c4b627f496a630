"""Values that a shell completes: names of formats, and of branches and tags.

Rule: completing reads the repository and writes nothing; where there is none, there is nothing to complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from trace_cli.render.escape import safe
from trace_store.environment import Environment
from trace_store.errors import TraceError
from trace_store.store import Store, find

PLACES = ("refs/heads/", "refs/tags/")


def one_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return what completes one of the names."""
    known = tuple(names)

    def complete(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return complete


def revisions(incomplete: str) -> list[str]:
    """Return HEAD and the short names of branches and tags that begin like this."""
    names = ["HEAD"]
    try:
        with Store.open(find(os.getcwd(), Environment.read())) as store:
            names += [
                name.removeprefix(place)
                for place in PLACES
                for name, _ in store.refs.iterate(place)
            ]
    except (TraceError, OSError):
        return []
    # What a terminal would obey is not put on its command line.
    return [name for name in names if name.startswith(incomplete) and safe(name) == name]
