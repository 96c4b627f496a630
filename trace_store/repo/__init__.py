"""The front door: a repository, and its lines (branches).

    from trace_store import Repo

`Repo` opens a repository and is the line of HEAD; `repo.line("idea")` has the same verbs on another branch. Each
subject is a small object, whose class is in the package of the subject: `repo.branches`, `repo.tags`,
`repo.sessions`, `repo.transcripts`, `repo.checkpoints`, `repo.compression`, `repo.trash`, `repo.bundles`,
`repo.maintenance`.
"""
