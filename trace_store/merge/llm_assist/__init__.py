"""Model-assisted merges: the request, the answer, and a review of meaning."""

from trace_store.base.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.merge.llm_assist import review as review
    from trace_store.merge.llm_assist import semantic as semantic

__getattr__ = submodules(__name__)
