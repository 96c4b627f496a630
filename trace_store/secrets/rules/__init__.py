"""The kinds of secrets that are known, the most telling first.

Rule: each is written from what its issuer documents of the form: prefix, length, alphabet, checksum. `VERSION` counts
the changes of this table and of how it is used; a commit in which something was found names it.
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
