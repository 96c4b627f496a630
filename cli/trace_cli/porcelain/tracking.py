"""How a branch stands to its upstream, for `trace status`: few working copies have one, so few runs load this."""

from __future__ import annotations

from trace_cli.render.escape import safe
from trace_cli.render.tables import counted
from trace_store import branching

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.branching import Tracking
    from trace_store.oid import ObjectId
    from trace_store.store import Store


def tracking_of(store: Store, ref: str, oid: ObjectId | None) -> Tracking | None:
    """Return how a branch, which stands at a commit, stands to its upstream; None when it has none."""
    return branching.tracking(store, ref, oid)


def upstream_line(compared: Tracking) -> str:
    """Return the line that says so."""
    name = safe(compared.upstream.removeprefix("refs/heads/"))
    if compared.ahead is None or compared.behind is None:
        return f"upstream: {name}, which has no commit"
    said = [
        f"{which} by {counted(count, 'commit')}"
        for which, count in (("ahead", compared.ahead), ("behind", compared.behind))
        if count
    ]
    return f"upstream: {name}, {' and '.join(said) or 'which stands at the same commit'}"
