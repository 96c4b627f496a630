"""Secrets do not enter: what finds them in text, and what stands in their place.

Few commands meet anything that looks like one, so what is offered here is imported when it is first asked for.
"""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.secrets import engine as engine
    from trace_store.secrets import guard as guard
    from trace_store.secrets import modes as modes
    from trace_store.secrets import placeholders as placeholders
    from trace_store.secrets import rules as rules
    from trace_store.secrets import settings as settings
    from trace_store.secrets import user_files as user_files

__getattr__ = submodules(__name__)
