"""The front door: a repository, its lines (branches) and its subjects.

    from trace_store.repo.repository import Repo

`Repo` opens a repository and is the line of HEAD; `repo.line("idea")` has the same verbs on another branch. Each
subject is a small object: `repo.branches`, `repo.tags`, `repo.checkpoints`, `repo.compression`,
`repo.trash`, `repo.transcripts`, `repo.bundles`, `repo.maintenance`.
"""

from trace_store.lazy_import import submodules

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

__getattr__ = submodules(__name__)
