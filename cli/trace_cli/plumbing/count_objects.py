"""`trace count-objects`: the number of objects and their disk usage.

Without options one line: `<number> objects, <number> KiB`. With `-v` one `name: number` per line, in this order:

    loose               loose objects
    loose-bytes         their size
    packs               packs
    packed              objects in packs
    pack-bytes          size of the packs, not counting their indexes
    journal             objects in journals, which the next seal writes to a pack
    journal-bytes       size of the journals
    transactions        transactions in the journals
    refs                refs

An object in several places is counted in each. Sizes are in bytes; KiB are rounded up.
"""

from __future__ import annotations

from trace_cli.arguments import Option, takes
from trace_cli.plumbing.support import open_store
from trace_cli.runtime import Invocation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.store.store import Store

KIB = 1024


@takes(Option("-v", "verbose", "Print one `name: number` per line"))
def run(invocation: Invocation, *, verbose: bool) -> int:
    """Print the counts."""
    with open_store(invocation) as store:
        counts = _counts(store)
    if verbose:
        for name, value in counts.items():
            invocation.line(f"{name}: {value}")
        return 0
    objects = counts["loose"] + counts["packed"] + counts["journal"]
    size = counts["loose-bytes"] + counts["pack-bytes"] + counts["journal-bytes"]
    invocation.line(f"{objects} objects, {-(-size // KIB)} KiB")
    return 0


def _counts(store: Store) -> dict[str, int]:
    layout, objects, unsealed = store.layout, store.objects, store.unsealed()
    packs = objects.packs.names()
    journals = [layout.journal_file(file.number) for file in store.journal.files]
    loose = list(objects.loose.iterate())
    return {
        "loose": len(loose),
        "loose-bytes": _size(store, [layout.loose_file(oid.hex()) for oid in loose]),
        "packs": len(packs),
        "packed": sum(1 for _ in objects.packs.iterate()),
        "pack-bytes": _size(store, [layout.pack_file(name) for name in packs]),
        "journal": unsealed.objects,
        "journal-bytes": _size(store, journals),
        "transactions": unsealed.transactions,
        "refs": sum(1 for _ in store.refs.iterate("refs/")),
    }


def _size(store: Store, paths: list[str]) -> int:
    stats = [store.disk.stat(path) for path in paths]
    return sum(each.st_size for each in stats if each is not None)
