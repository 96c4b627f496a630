"""Secrets: finding and redacting them before they are stored.

Most commands see nothing that looks like a secret, so the modules here are loaded late.
"""

from trace_store.base.lazy_import import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.secrets import engine as engine
    from trace_store.secrets import first_pass as first_pass
    from trace_store.secrets import guard as guard
    from trace_store.secrets import placeholders as placeholders
    from trace_store.secrets import rules as rules
    from trace_store.secrets import settings as settings
    from trace_store.secrets import user_files as user_files
    from trace_store.secrets.engine import Scanner as Scanner
    from trace_store.secrets.guard import position as position

REDACT = "redact"
"""Mode: a placeholder is stored instead of a secret."""
BLOCK = "block"
"""Mode: nothing is stored, and an error is raised."""
WARN = "warn"
"""Mode: the secret is stored and reported."""
OFF = "off"
"""Mode: nothing is checked."""

MODES = (REDACT, BLOCK, WARN, OFF)

_HOMES = {
    "position": "guard",
    "Scanner": "engine",
}

__all__ = [*_HOMES]
__getattr__ = names(__name__, _HOMES)
