"""OpenAI Agents SDK: a session; extra `openai-agents`.

    Runner.run(agent, "Hello", session=TraceSession("support-17", repo))

A session is a folder of records, one for each branch. An item comes back as it was given. The messages among the items
are the context of the record, so a session reads like a branch.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from agents import SessionSettings, TResponseInputItem
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit

from trace_store import errors
from trace_store.base import check
from trace_store.base.oid import ObjectId
from trace_store.history.records import WARN, Moves, RecordDraft, RecordState
from trace_store.integrations.framework_store import FrameworkStore, message_of
from trace_store.integrations.item_lists import (
    ItemLists,
    encode_json,
    finished,
    retried,
    write_lock,
)
from trace_store.maintenance.erase import EraseReport
from trace_store.objects.message import Message
from trace_store.providers.documents import read_messages
from trace_store.repo.repository import Repo

PROGRAM = META = "openai-agents"
"""The folder of the records; and the field of a commit's metadata with the id of its session."""
SESSION = "openai-agents.session"
MAIN, CLEARED = "main", "cleared-"
_ITEMS = "items"


class TraceSession:
    """Keeps the items of a session in a repository. Threads and processes may share it.

    Attributes:
        session_id: the id that it was opened with.
        session_settings: the settings, such as how many items `get_items` returns.
        branch: the branch of the session.
    """

    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        repo: Repo,
        *,
        branch: str = MAIN,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        secrets: str = WARN,
    ) -> None:
        """Open a session, which begins with its first item.

        Args:
            session_id: its id.
            repo: the repository, which the caller closes.
            branch: the branch of the session.
            session_settings: as for the SDK's own sessions.
            secrets: "warn" stores items with secrets unchanged and says so once, "refuse" raises SecretFoundError,
                "off" does not look.
        """
        check.text(session_id=session_id, branch=branch)
        for name, text in (("session_id", session_id), ("branch", branch)):
            if not text:
                raise errors.InvalidInputError(f"{name} must not be empty", argument=name)
        self.session_id = session_id
        self.branch = branch
        self.session_settings = coerce_session_settings(
            SessionSettings() if session_settings is None else session_settings
        )
        self._secrets = secrets
        self._store = FrameworkStore(repo, PROGRAM, secrets=secrets)
        self._records = self._store.records
        self._lists = ItemLists(self._records, _ITEMS)
        self._mutex = write_lock(repo)
        self._added: RecordState | None = None

    @property
    def ref(self) -> str:
        """The record of the session's branch, for `repo.log`, `repo.compile` and `ref=`."""
        return self._name(self.branch)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items in order, or only the latest; the default limit is that of `session_settings`."""
        return await asyncio.to_thread(
            self._get, resolve_session_limit(limit, self.session_settings)
        )

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items in one commit."""
        if items:
            await finished(self._add, [encode_json(item) for item in items])

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the last item and return it; None if there is none. The reflog still has it."""
        return await finished(self._pop)

    async def clear_session(self) -> None:
        """Begin again without items. They stay on a branch `cleared-…`; `delete` erases them."""
        await finished(self._clear)

    async def fork(self, branch: str, *, keep: int | None = None) -> TraceSession:
        """Begin a branch of the session, and return it; the items are shared.

        Args:
            branch: the new branch.
            keep: how many items it begins with; None is all.

        Raises:
            AlreadyExistsError: the branch exists.
            InvalidInputError: the session has fewer items.
        """
        await finished(self._fork, branch, keep)
        return TraceSession(
            *(self.session_id, self._store.repo),
            branch=branch,
            session_settings=self.session_settings,
            secrets=self._secrets,
        )

    async def branches(self) -> list[str]:
        """Return the branches of the session."""
        return await asyncio.to_thread(self._branches)

    async def delete(self) -> EraseReport:
        """Delete the session with all its branches, and erase what only they hold."""
        return await finished(self._delete)

    def _name(self, branch: str) -> str:
        return self._store.name(self.session_id, branch)

    def _folder(self) -> str:
        return self.ref.rpartition("/")[0] + "/"

    def _get(self, limit: int | None) -> list[Any]:
        pieces = self._lists.pieces(self._store.state(self.ref))
        if limit is not None and limit >= 0:  # as in SQL, a negative limit is none
            pieces = pieces[len(pieces) - limit :] if limit < len(pieces) else pieces
        return [*map(json.loads, pieces)]

    def _add(self, pieces: Sequence[bytes]) -> None:
        def attempt() -> None:
            # A state that another call has moved on from makes this attempt fail, so the tip is not read first.
            state, self._added = self._added or self._store.state(self.ref), None
            tip, values = (None, {}) if state is None else (state.commit, state.values)
            draft = self._records.draft(self.ref, expect=tip, values=values)
            count = self._lists.count(state)
            self._added = self._commit(draft, state, pieces, count, self.branch)

        with self._mutex:
            retried(attempt)

    def _pop(self) -> Any:
        def attempt() -> Any:
            state = self._store.state(self.ref)
            pieces = self._lists.pieces(state)
            if state is None or not pieces:
                return None
            cut = self._lists.cut(state, META, len(pieces) - 1)
            if cut.start is not None and not cut.rest:  # the item was the first of its commit
                self._records.move({self.ref: (state.commit, cut.start)}, "pop")
            else:
                draft = self._rewound(state, cut.start)
                self._commit(draft, state, cut.rest, cut.at, self.branch)
            return json.loads(pieces[-1])

        with self._mutex:
            return retried(attempt)

    def _clear(self) -> None:
        def attempt() -> None:
            state = self._store.state(self.ref)
            if state is None or not self._lists.count(state):
                return
            kept = self._name(f"{CLEARED}{state.commit.short()}")
            moves = {kept: (self._records.tip(kept), state.commit)}
            self._commit(self._rewound(state, None), state, [], 0, self.branch, moves)

        with self._mutex:
            retried(attempt)

    def _fork(self, branch: str, keep: int | None) -> None:
        check.text(branch=branch)
        if not branch:
            raise errors.InvalidInputError("branch must not be empty", argument="branch")

        def attempt() -> None:
            name, state = self._name(branch), self._store.state(self.ref)
            count = self._lists.count(state)
            wanted = count if keep is None else check_range(keep, count)
            if self._records.tip(name) is not None:
                raise errors.AlreadyExistsError(f"the session has a branch {branch[:80]!r} already")
            if state is None:
                raise errors.NotFoundError("the session has no items yet")
            cut = self._lists.cut(state, META, wanted)
            moves = {self.ref: (state.commit, state.commit)}
            draft = self._records.draft(name, start=cut.start, expect=None)
            self._commit(draft, state, cut.rest, cut.at, branch, moves)

        with self._mutex:
            retried(attempt)

    def _branches(self) -> list[str]:
        found = []
        for name, tips in self._records.tips(self._folder()).items():
            branch = name.rpartition("/")[2]
            if (
                self._name(branch) != name
            ):  # a hash replaces characters that a ref name may not have
                lines = self._records.lines([tips[0]])
                said = (commit.meta.get(META) for _, commit in lines)
                branch = next((each["branch"] for each in said if each), branch)
            found.append(branch)
        return sorted(found)

    def _delete(self) -> EraseReport:
        with self._mutex:
            self._lists.forget()
            self._added = None
            return self._records.delete(*self._records.tips(self._folder()))

    def _rewound(self, state: RecordState, start: ObjectId | None) -> RecordDraft:
        return self._records.draft(self.ref, start=start, expect=state.commit, rewinds=True)

    def _commit(
        self,
        draft: RecordDraft,
        state: RecordState | None,
        pieces: Sequence[bytes],
        keep: int,
        branch: str,
        moves: Moves | None = None,
    ) -> RecordState:
        """Write a commit that adds items, with their messages, to the first ones of a state."""
        meta = self._lists.fill(draft, state, pieces, keep=keep)
        if made := _messages(pieces):
            draft.messages.extend(made)
        said = {"session": self.session_id, "branch": branch, **meta}
        return draft.write({SESSION: self.session_id}, meta={META: said}, moves=moves)


def check_range(keep: object, count: int) -> int:
    """Return a number of items to keep.

    Raises:
        InvalidInputError: there are fewer.
    """
    if isinstance(keep, bool) or not isinstance(keep, int) or not 0 <= keep <= count:
        raise errors.InvalidInputError(f"keep is 0 to {count}, not {keep!r:.40}", argument="keep")
    return keep


def _messages(pieces: Sequence[bytes]) -> list[Message]:
    """Return the messages of items; if one is of unknown form, convert each item separately."""
    items: list[Any] = [*map(json.loads, pieces)]
    try:
        return read_messages(items)
    except errors.TraceError:
        return [made for item in items if (made := message_of(item)) is not None]
