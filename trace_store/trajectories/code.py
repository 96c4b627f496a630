"""Links from trajectories to commits of the code: `repo.trajectories.code`."""

from __future__ import annotations

from trace_store import trajectories
from trace_store.trajectories import links
from trace_store.trajectories.git import git_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trace_store.store.handle import Store
    from trace_store.trajectories.git import Git
    from trace_store.trajectories.git_notes import NotesReport
    from trace_store.trajectories.handle import Recorded, Trajectories


class Code:
    """The commits of the code that belong to trajectories."""

    def __init__(self, trajectories: Trajectories, store: Store) -> None:
        self._trajectories = trajectories
        self._store = store

    def link(
        self,
        commits: Sequence[str] = ("HEAD",),
        *,
        folder: str | Git = ".",
        trajectory: str = "",
        agent: str = "",
    ) -> Sequence[Recorded]:
        """Link commits of the code, with their files and the id of their change; those linked already are left out.

        Args:
            commits: their names in git.
            folder: a folder in the git repository, or a `Git` that runs there.
            trajectory: its id, or the beginning of it.
            agent: who made them.

        Raises:
            RevisionNotFoundError: git knows no such commit.
            StateError: the folder is in no git repository, or git is not installed; or as in `Trajectories.record`.
            RefNotFoundError: there is no such trajectory.
        """
        state, git = self._trajectories.find(trajectory), git_in(folder)
        new = links.new_links(self._store, state, git, commits)
        return self._trajectories.record_all(state.id, new, agent)

    def follow_rewrite(
        self, pairs: Iterable[tuple[str, str]], *, folder: str | Git = "."
    ) -> Sequence[Recorded]:
        """Let links lead to the commits that replaced theirs, in all trajectories.

        Args:
            pairs: (old, new) ids of commits, as git gives them to its hook `post-rewrite`.
            folder: a folder in the git repository, or a `Git` that runs there.

        Raises:
            As `link`.
        """
        git = git_in(folder)
        replaced = links.replaced_links(self._store, git, pairs)
        return [
            each
            for state, changes in replaced
            for each in self._trajectories.record_all(state.id, changes)
        ]

    def write_notes(
        self, trajectory: str = "", *, folder: str | Git = ".", remove: bool = False
    ) -> NotesReport:
        """Write the decisions behind each linked commit to a git note on it, or remove these notes.

        Args:
            trajectory: its id, or the beginning of it.
            folder: a folder in the git repository, or a `Git` that runs there.
            remove: whether to remove them; notes of others stay.

        Raises:
            StateError: the folder is in no git repository, or git is not installed; or as in `Trajectories.find`.
            InvalidInputError: git refuses, for example because it does not know the user's name.
            RefNotFoundError: there is no such trajectory.
        """
        git = git_in(folder)
        return trajectories.git_notes.write_notes(
            git, self._trajectories.read(trajectory), remove=remove
        )
