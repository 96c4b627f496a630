"""What a page can ask for. Every action can be undone, and says what it did in one sentence.

A page sends a name and texts. Nothing here reads or writes a file of the user: an export is the answer itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trace_store.base.frozen import value
from trace_store.context.wording import excerpt
from trace_store.errors import InvalidInputError
from trace_store.exporters.overview import count_noun
from trace_store.repo.repository import Repo

DEFAULT_SHARE = "60%"


@value
class Asked:
    """An action with its texts.

    Attributes:
        session: the branch that it changes; "" is HEAD's.
        message: the address of a message, or "".
        text: new wording, a name, or a number of tokens; "" if the action has none.
    """

    session: str = ""
    message: str = ""
    text: str = ""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Asked:
        """Return an action from JSON values.

        Raises:
            InvalidInputError: one of them is not a text.
        """
        texts = {name: given.get(name, "") for name in ("session", "message", "text")}
        if not all(isinstance(each, str) for each in texts.values()):
            raise InvalidInputError("an action has only texts")
        return cls(**texts)

    def needs(self, *names: str) -> None:
        """Raise InvalidInputError if a text is missing."""
        for name in names:
            if not getattr(self, name):
                raise InvalidInputError(f"the action needs a {name}")


def act(repo: Repo, action: str, asked: Asked) -> dict[str, Any]:
    """Do what a page asks for, and return a sentence as `said`; `undo` tells whether the page offers to undo it.

    Raises:
        InvalidInputError: there is no such action.
        TraceError: as the verb of the library.
    """
    run = ACTIONS.get(action)
    if run is None:
        raise InvalidInputError(f"there is no action {action[:40]!r}")
    return {"said": run(repo, asked), "undo": action not in ("undo", "export", "checkpoint")}


def _annotate(priority: str) -> Callable[[Repo, Asked], str]:
    def run(repo: Repo, asked: Asked) -> str:
        asked.needs("message")
        repo.annotate(asked.message, priority=priority, ref=asked.session)
        return f"Message {asked.message} is {priority}."

    return run


def _remove(repo: Repo, asked: Asked) -> str:
    asked.needs("message")
    done = repo.remove(asked.message, ref=asked.session)
    others = [each.short() for each in done.also]
    with_it = f", with {', '.join(others)} of the same call" if others else ""
    return f"Message {asked.message} is removed{with_it}; it is in the trash."


def _restore(repo: Repo, asked: Asked) -> str:
    asked.needs("message")
    done = repo.trash.restore(asked.message, ref=asked.session)
    names = [str(each.address) for each in done.restored] + [each.ref for each in done.refs]
    return f"Restored: {', '.join(filter(None, names)) or 'nothing'}."


def _edit(repo: Repo, asked: Asked) -> str:
    asked.needs("message", "text")
    repo.edit(asked.message, asked.text, ref=asked.session)
    return f"Message {asked.message} has a new wording."


def _trim(repo: Repo, asked: Asked) -> str:
    to = repo.compression.target(asked.text or DEFAULT_SHARE, ref=asked.session)
    done = repo.compression.trim(to, partial=True, ref=asked.session)
    return f"Trimmed from {done.before:,} to {done.after:,} tokens."


def _compact(repo: Repo, asked: Asked) -> str:
    to = repo.compression.target(asked.text or DEFAULT_SHARE, ref=asked.session)
    done = repo.compression.compress(to, force=True, ref=asked.session)
    return f"Compacted from {done.plan.before:,} to {done.after:,} tokens."


def _clear(repo: Repo, asked: Asked) -> str:
    asked.needs("session")
    done = repo.sessions.open(asked.session).clear()
    return (
        "There is nothing to clear."
        if done is None
        else "The messages are hidden; instructions and pins stay."
    )


def _checkpoint(repo: Repo, asked: Asked) -> str:
    asked.needs("text")
    name = "-".join(asked.text.split())  # people give it words
    saved = repo.checkpoints.save(name, ref=asked.session or "HEAD")
    return f"Saved the checkpoint {saved.name}."


def _undo(repo: Repo, asked: Asked) -> str:
    done = repo.undo(ref=asked.session)
    return f"Undid: {excerpt(done.summary, 80)}. {count_noun(len(done.moves), 'ref')} moved."


ACTIONS: dict[str, Callable[[Repo, Asked], str]] = {
    "pin": _annotate("pinned"),
    "unpin": _annotate("normal"),
    "remove": _remove,
    "restore": _restore,
    "edit": _edit,
    "trim": _trim,
    "compact": _compact,
    "clear": _clear,
    "checkpoint": _checkpoint,
    "undo": _undo,
}
