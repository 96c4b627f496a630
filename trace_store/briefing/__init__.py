"""Briefs: what an agent should know at the start of a task, within a budget of tokens.

`choice` picks what bears on a task or on files, `brief` renders it, and `permission` is the user's list of the
repositories that may speak to agents.
"""

from trace_store.base.lazy_import import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.briefing import briefs as briefs
    from trace_store.briefing.brief import Brief as Brief
    from trace_store.briefing.brief import BriefNote as BriefNote
    from trace_store.briefing.permission import BriefPermission as BriefPermission

_HOMES = {"Brief": "brief", "BriefNote": "brief", "BriefPermission": "permission"}

__all__ = [*_HOMES]
__getattr__ = names(__name__, _HOMES)
