"""Secrets do not enter: what finds them in text, and what stands in their place.

Few commands meet anything that looks like one, so what is offered here is imported when it is first asked for.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.secrets.engine import Scanner, SecretFinding, replaced
    from trace_store.secrets.guard import Guard
    from trace_store.secrets.keys import KEY_BYTES, content_salt, store_key
    from trace_store.secrets.modes import MODES, REDACT
    from trace_store.secrets.own_files import allowed, is_finding_id, placeholder_key, write_allowed
    from trace_store.secrets.rules import RULES, VERSION, Rule
    from trace_store.secrets.settings import Settings, read_settings

__all__ = [
    "KEY_BYTES",
    "MODES",
    "REDACT",
    "RULES",
    "VERSION",
    "Guard",
    "Rule",
    "Scanner",
    "SecretFinding",
    "Settings",
    "allowed",
    "content_salt",
    "is_finding_id",
    "placeholder_key",
    "read_settings",
    "replaced",
    "store_key",
    "write_allowed",
]

__getattr__ = door(
    __name__,
    {
        "Guard": "guard",
        "KEY_BYTES": "keys",
        "MODES": "modes",
        "REDACT": "modes",
        "RULES": "rules",
        "Rule": "rules",
        "Scanner": "engine",
        "SecretFinding": "engine",
        "Settings": "settings",
        "VERSION": "rules",
        "allowed": "own_files",
        "content_salt": "keys",
        "is_finding_id": "own_files",
        "placeholder_key": "own_files",
        "read_settings": "settings",
        "replaced": "engine",
        "store_key": "keys",
        "write_allowed": "own_files",
    },
)
