"""What a repair did, and what it could not do: as values, as JSON, and as a page to read."""

from __future__ import annotations

import json

from trace_store.frozen import value
from trace_store.maintenance.fsck_objects import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@value
class Mended:
    """One thing that repair did, or would do.

    Attributes:
        kind: `pack`, `object`, `journal`, `ref`, `head`, `derived` or `file`.
        what: the file, object or ref that it is about.
        detail: what was done, in one sentence.
    """

    kind: str
    what: str
    detail: str


@value
class Lost:
    """An object that was found nowhere.

    Attributes:
        oid: its id, in hex digits.
        named_by: the objects that name it, in hex digits.
        refs: the refs that lead to it.
        why: one sentence.
    """

    oid: str
    named_by: tuple[str, ...]
    refs: tuple[str, ...]
    why: str


@value
class SalvageReport:
    """What a repair did.

    Attributes:
        mended: what was done, in order.
        lost: what was found nowhere.
        kept: the files in `lost-found/`, relative to `.trace`.
        remaining: what a check finds afterwards; without a repair, before.
        report: the file that says the same, relative to `.trace`; "" when there was nothing to write down.
        dry_run: whether nothing was written.
    """

    mended: tuple[Mended, ...] = ()
    lost: tuple[Lost, ...] = ()
    kept: tuple[str, ...] = ()
    remaining: tuple[Finding, ...] = ()
    report: str = ""
    dry_run: bool = False

    def record(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "mended": [{"kind": m.kind, "what": m.what, "detail": m.detail} for m in self.mended],
            "lost": [
                {"object": e.oid, "named_by": [*e.named_by], "refs": [*e.refs], "why": e.why}
                for e in self.lost
            ],
            "kept": list(self.kept),
            "remaining": [
                {"severity": f.severity, "code": f.code, "what": f.what, "detail": f.detail}
                for f in self.remaining
            ],
            "report": self.report or None,
            "dry_run": self.dry_run,
        }

    def as_json(self) -> bytes:
        """Return the bytes of the report for programs."""
        return (json.dumps(self.record(), indent=1, sort_keys=True) + "\n").encode()

    def as_text(self) -> bytes:
        """Return the bytes of the report for people."""
        lines = ["What `trace fsck --repair` did", ""]
        lines += [f"{each.kind} {each.what}: {each.detail}" for each in self.mended]
        lines += ["", "Taken out of use, and kept beside this file:"]
        lines += [f"  {path}" for path in self.kept] or ["  nothing"]
        lines += ["", "Found nowhere:"]
        for lost in self.lost:
            lines.append(f"  {lost.oid}: {lost.why}")
            lines += [f"    named by {oid}" for oid in lost.named_by]
            lines += [f"    on {name}" for name in lost.refs]
        if not self.lost:
            lines.append("  nothing")
        return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")
