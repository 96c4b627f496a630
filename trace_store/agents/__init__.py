"""Agents: sessions spawned by another session, which collects their conclusions."""

from trace_store.base.lazy_import import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.agents import agents as agents
    from trace_store.agents.agent import AgentSession as AgentSession
    from trace_store.agents.agents import Agents as Agents

_HOMES = {"AgentSession": "agent", "Agents": "agents"}

__all__ = [*_HOMES]
__getattr__ = names(__name__, _HOMES)
