"""Subjects of a store that no `Repo` has opened."""

from __future__ import annotations

from trace_store.bundles import Bundles
from trace_store.maintenance import Maintenance
from trace_store.sessions import Sessions, Transcripts
from trace_store.store.store import Store
from trace_store.writer import Writer


def bundles(store: Store | None = None) -> Bundles:
    """Return the subject `bundles` of a store, or of an empty one in memory."""
    return Bundles(Writer(store or Store.memory()))


def sessions(store: Store) -> Sessions:
    """Return the subject `sessions` of a store."""
    return Sessions(Writer(store))


def transcripts(store: Store) -> Transcripts:
    """Return the subject `transcripts` of a store."""
    return Transcripts(Writer(store))


def upkeep(store: Store) -> Maintenance:
    """Return the subject `maintenance` of a store."""
    return Maintenance(Writer(store))
