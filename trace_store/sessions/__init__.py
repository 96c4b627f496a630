"""Sessions of agents, and the transcripts that they are imported from."""

from trace_store.base.lazy_import import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.sessions import compactions as compactions
    from trace_store.sessions import listing as listing
    from trace_store.sessions import session as session
    from trace_store.sessions import sessions as sessions
    from trace_store.sessions import transcripts as transcripts
    from trace_store.sessions.session import Session as Session
    from trace_store.sessions.sessions import Sessions as Sessions
    from trace_store.sessions.transcripts import Transcripts as Transcripts

_HOMES = {"Session": "session", "Sessions": "sessions", "Transcripts": "transcripts"}

__all__ = [*_HOMES]
__getattr__ = names(__name__, _HOMES)
