"""The known kinds of secrets, most specific first.

Each rule follows its issuer's documentation of the format: prefix, length, alphabet, checksum. `VERSION` is increased
with every change of the rules or their use; commits with redacted secrets record it.
"""

from trace_store.secrets.rules.clouds import CLOUDS
from trace_store.secrets.rules.code import CODE
from trace_store.secrets.rules.general import GENERAL
from trace_store.secrets.rules.keys import KEYS
from trace_store.secrets.rules.models import MODELS
from trace_store.secrets.rules.rule import Rule
from trace_store.secrets.rules.services import SERVICES

__all__ = ["RULES", "VERSION", "Rule"]

VERSION = 1

RULES: tuple[Rule, ...] = (*KEYS, *CLOUDS, *CODE, *MODELS, *SERVICES, *GENERAL)
