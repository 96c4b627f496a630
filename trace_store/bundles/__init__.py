"""Bundles: refs and everything reachable from them, in one file."""

from trace_store.base.lazy_import import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.bundles import bundles as bundles
    from trace_store.bundles.bundles import Bundles as Bundles

_HOMES = {"Bundles": "bundles"}

__all__ = [*_HOMES]
__getattr__ = names(__name__, _HOMES)
