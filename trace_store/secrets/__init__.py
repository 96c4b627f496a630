"""Secrets do not enter: what finds them in text, and what stands in their place.

Few commands meet anything that looks like one, so what is offered here is imported when it is first asked for.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_store.secrets.engine import Scanner, SecretFinding
    from trace_store.secrets.keys import KEY_BYTES, content_salt, store_key
    from trace_store.secrets.rules import RULES, VERSION, Rule

__all__ = [
    "KEY_BYTES",
    "RULES",
    "VERSION",
    "Rule",
    "Scanner",
    "SecretFinding",
    "content_salt",
    "store_key",
]

__getattr__ = door(
    __name__,
    {
        "KEY_BYTES": "keys",
        "RULES": "rules",
        "VERSION": "rules",
        "Rule": "rules",
        "Scanner": "engine",
        "SecretFinding": "engine",
        "content_salt": "keys",
        "store_key": "keys",
    },
)


def take_nothing(text: str) -> str:
    """Return the text as it is. Where this is the filter, nobody has to look at texts one by one."""
    return text


filter_text: "Callable[[str], str]" = take_nothing
"""Return a text as it may be stored; the very same object when nothing is taken out."""
