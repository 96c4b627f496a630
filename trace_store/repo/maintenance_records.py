"""The JSON shapes of maintenance: bundles, repairs, stored secrets, space, garbage and purges; as `records`."""

from __future__ import annotations

from trace_store.frozen import fields
from trace_store.objects.address import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from trace_store.bundles.create import BundleReport
    from trace_store.bundles.format import BundledRef
    from trace_store.bundles.ingest import ImportedBundle
    from trace_store.history.repair import ContextRepairReport
    from trace_store.history.retention import ExpiryReport
    from trace_store.importers.report import FileReport
    from trace_store.maintenance.du import Amount, StoreUsage, UsageRow
    from trace_store.maintenance.gc import GcReport
    from trace_store.maintenance.object_scan import StoredSecret
    from trace_store.maintenance.purge import PurgeReport, RewrittenHistory


def stored_secret(found: StoredSecret) -> dict[str, Any]:
    """Return a secret that was found in stored content."""
    return record(found, oid="object")


def bundle(file: str, report: BundleReport) -> dict[str, Any]:
    """Return a bundle."""
    return {
        "path": file,
        "refs": bundled_refs(report.refs),
        "prerequisites": [str(oid) for oid in report.prerequisites],
        "objects": report.object_count,
        "packs": report.pack_count,
        "size_bytes": report.size_bytes,
        "head": report.head or None,
        "secrets": report.secrets,
    }


def imported_bundle(file: str, report: ImportedBundle) -> dict[str, Any]:
    """Return an imported bundle."""
    return {
        "path": file,
        "refs": [
            {
                "name": each.name,
                "source": each.source,
                "outcome": each.outcome,
                "before": None if each.before is None else str(each.before),
                "tips": [str(tip) for tip in each.theirs],
            }
            for each in report.refs
        ],
        "objects": report.bundle.object_count,
        "packs": list(report.packs),
        "head": report.head or None,
    }


def bundled_refs(refs: Sequence[BundledRef]) -> dict[str, list[str]]:
    """Return the refs of a bundle with their tips."""
    return {ref.name: [str(tip) for tip in ref.tips] for ref in refs}


def repair(report: ContextRepairReport, file: FileReport | None) -> dict[str, Any]:
    """Return the repair of a context."""
    return {
        "outcome": report.outcome,
        "ref": report.ref or None,
        "commit": str(report.commit),
        "message_count": report.message_count,
        "faults": [
            {
                "code": fault.code,
                "address": None if fault.address is None else fault.address.hex,
                "position": fault.at,
                "detail": fault.detail,
                "done": fault.done,
                "providers": list(fault.providers),
            }
            for fault in report.faults
        ],
        "adaptations": {
            provider: _counts(each.code for each in repairs)
            for provider, repairs in sorted(report.adaptations.items())
        },
        "repaired": report.repaired or None,
        "repair_commit": None if report.result is None else str(report.result.oid),
        "skips": []
        if file is None
        else [[skip.line, skip.reason, skip.detail] for skip in file.skips],
    }


def _counts(names: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in sorted(names):
        found[name] = found.get(name, 0) + 1
    return found


def gc(report: GcReport, expiry: ExpiryReport, *, dry_run: bool) -> dict[str, Any]:
    """Return what gc or prune removed, and which refs expired from the trash, or would."""
    return {
        "dry_run": dry_run,
        **{name: getattr(report, name) for name in fields(report)},
        "damaged": list(report.damaged),
        "expired": [{"ref": each.ref, "rule": rule} for each, rule in expiry.expired],
        "expired_bytes": expiry.freed.disk,
        "kept": [{"ref": each.ref, "reason": reason} for each, reason in expiry.kept],
    }


def du(found: StoreUsage) -> dict[str, Any]:
    """Return the space that a repository takes."""
    return {
        "files": found.files,
        "file_bytes": found.file_bytes,
        "disk_bytes": found.disk,
        "total": _amount(found.total),
        "unreachable": _amount(found.unreachable),
        "repeated_bytes": found.repeated,
        "kinds": {kind: _amount(amount) for kind, amount in found.kinds.items()},
        "branches": _du_parts(found.branches),
        "sessions": _du_parts(found.sessions),
    }


def _du_parts(parts: Sequence[UsageRow]) -> list[Mapping[str, Any]]:
    return [
        {
            "name": part.name,
            "files": part.files,
            "file_bytes": part.file_bytes,
            "whole": _amount(part.whole),
            "own": _amount(part.own),
        }
        for part in parts
    ]


def _amount(amount: Amount) -> dict[str, int]:
    return {"objects": amount.objects, "bytes": amount.bytes, "disk_bytes": amount.disk}


def purge(report: PurgeReport, issued: RewrittenHistory | None, *, done: bool) -> dict[str, Any]:
    """Return a purge."""
    plan, absence = report.plan, report.absence
    guessable = set(plan.guessable)
    return {
        "purged": done,
        "objects": [
            {"object": str(oid), "size": plan.sizes.get(oid), "guessable": oid in guessable}
            for oid in plan.objects
        ],
        "commits": [
            {
                "commit": str(holder.commit),
                "addresses": [address.hex for address in holder.messages],
                "refs": list(holder.refs),
            }
            for holder in plan.holders.commits
        ],
        "refs": list(plan.holders.refs),
        "contexts": [
            {
                "commit": str(sent.commit),
                "report": str(sent.report),
                "provider": sent.provider or None,
                "model": sent.model or None,
                "sent": sent.sent or None,
            }
            for sent in plan.holders.contexts
        ],
        "elsewhere": list(map(str, plan.elsewhere)),
        "structure": list(map(str, plan.structure)),
        "packs": list(plan.packed),
        "loose": plan.loose,
        "reissued": []
        if issued is None
        else [[str(old), str(new)] for old, new in issued.objects.items()],
        "tombstones": report.tombstones,
        "kept_out": report.kept_out,
        "rewritten": report.packs,
        "files": report.files,
        "left": [[path, why] for path, why in report.left],
        "damaged": list(report.damaged),
        "absent": None if absence is None else absence.is_proven,
        "found": [] if absence is None else [[f.path, f.what, f.where] for f in absence.found],
        "unread": [] if absence is None else [list(each) for each in absence.unread],
    }
