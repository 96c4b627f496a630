"""What a check finds."""

from __future__ import annotations

from trace_store.values import value

ERROR = "error"
WARNING = "warning"
INFO = "info"


@value
class Finding:
    """One thing that is not as it should be, or worth knowing.

    Attributes:
        code: a stable name of the kind of finding.
        severity: `error` (content is damaged or missing), `warning`, or `info`.
        what: the object, ref or file it is about.
        detail: one sentence.
    """

    code: str
    severity: str
    what: str
    detail: str
