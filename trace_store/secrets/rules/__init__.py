"""The known kinds of secrets, most specific first.

Each rule follows its issuer's documentation of the format: prefix, length, alphabet, checksum. `VERSION` is increased
with every change of the rules or their use; commits with redacted secrets record it.
"""

from trace_store.secrets.rules.general import GENERAL, KEYS
from trace_store.secrets.rules.issuers import CLOUDS, CODE, MODELS, SERVICES
from trace_store.secrets.rules.rule import Rule

__all__ = ["RULES", "VERSION", "Rule"]

VERSION = 2

RULES: tuple[Rule, ...] = (*KEYS, *CLOUDS, *CODE, *MODELS, *SERVICES, *GENERAL)
