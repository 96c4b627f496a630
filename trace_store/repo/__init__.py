"""The front door: a repository, its lines (branches) and its subjects.

    from trace_store import Repo

`Repo` opens a repository and is the line of HEAD; `repo.line("idea")` has the same verbs on another branch. Each
subject is a small object: `repo.branches`, `repo.tags`, `repo.checkpoints`, `repo.compression`,
`repo.trash`, `repo.transcripts`, `repo.bundles`, `repo.maintenance`.
"""

from trace_store.lazy_import import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.repo import branches as branches
    from trace_store.repo import bundles as bundles
    from trace_store.repo import compression as compression
    from trace_store.repo import in_progress as in_progress
    from trace_store.repo import maintenance as maintenance
    from trace_store.repo import maintenance_records as maintenance_records
    from trace_store.repo import records as records
    from trace_store.repo import tags as tags
    from trace_store.repo import trajectory_records as trajectory_records
    from trace_store.repo import transcripts as transcripts
    from trace_store.repo import trash as trash
    from trace_store.repo.branches import Branches as Branches
    from trace_store.repo.bundles import Bundles as Bundles
    from trace_store.repo.compression import Compression as Compression
    from trace_store.repo.in_progress import OngoingBisection as OngoingBisection
    from trace_store.repo.in_progress import Stopped as Stopped
    from trace_store.repo.maintenance import Maintenance as Maintenance
    from trace_store.repo.tags import Tags as Tags
    from trace_store.repo.transcripts import Transcripts as Transcripts
    from trace_store.repo.trash import Trash as Trash
    from trace_store.repo.trust import Trust as Trust

_HOMES = {
    "Branches": "branches",
    "Bundles": "bundles",
    "Compression": "compression",
    "Maintenance": "maintenance",
    "OngoingBisection": "in_progress",
    "Stopped": "in_progress",
    "Tags": "tags",
    "Transcripts": "transcripts",
    "Trash": "trash",
    "Trust": "trust",
}

__all__ = ["maintenance_records", "records", "trajectory_records", *_HOMES]
__getattr__ = names(__name__, _HOMES)
