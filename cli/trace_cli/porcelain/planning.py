"""The to-do list of a rebase: printed, read from a file, or changed in an editor."""

from __future__ import annotations

from trace_cli.failures import usage_error
from trace_cli.porcelain.editing import edited, keep_typed
from trace_cli.porcelain.reading import text_from
from trace_cli.render.escape import safe
from trace_store import context, errors, history, joining
from trace_store.context.wording import message_line
from trace_store.joining.rewriting import todo
from trace_store.objects import operations as ops
from trace_store.objects.commit import read_commit
from trace_store.revision import resolve_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trace_cli.runtime import Invocation
    from trace_store.joining.rewriting.todo import Step
    from trace_store.oid import ObjectId
    from trace_store.store import Store


def first_list(store: Store, upstream: str | None, onto: str) -> list[Step]:
    """Return the steps of the list for what a rebase would make anew, before anybody has changed it."""
    tip = resolve_commit(store, "HEAD")
    base = None if upstream is None else resolve_commit(store, upstream)
    start = resolve_commit(store, onto) if onto else base
    return [todo.Step(todo.PICK, oid) for oid in joining.to_rebase(store, base, tip, start)]


def printed(store: Store, steps: Sequence[Step]) -> Iterable[str]:
    """Return the lines of a list."""
    return map(safe, todo.written(steps, lambda oid: say(store, oid)).splitlines())


def step_record(store: Store, step: Step) -> dict[str, str]:
    """Return a step as JSON."""
    return {"deed": step.deed, "commit": str(step.oid), "summary": say(store, step.oid)}


def planned(
    invocation: Invocation, store: Store, steps: Sequence[Step], file: str | None
) -> Sequence[Step]:
    """Return the steps of a list in a file, or, without one, of the list that somebody changes in an editor.

    Raises:
        InvalidInputError: a line is not understood. What was typed is kept then, and the hint says where.
    """
    known = [step.oid for step in steps]
    if file is not None:
        return todo.read(text_from(invocation, file), known)
    if not steps:
        return steps
    written = todo.written(steps, lambda oid: say(store, oid))
    editor = invocation.environment.list_editor
    otherwise = "give the list with --todo; --print-todo prints one to begin with"
    text = edited(invocation, written, "todo", otherwise, editor)
    if not todo.lines(text):
        raise usage_error(
            "the to-do list is empty, and nothing was done", "`drop ID` leaves a commit out"
        )
    try:
        found = todo.read(text, known)
    except errors.InvalidInputError as error:
        kept = keep_typed(store, text, "todo")
        hint = f"the list is kept; once it is mended, --todo {kept} reads it in the place of -i"
        words = ", ".join(todo.DEEDS)
        raise errors.InvalidInputError(f"{error.message}; there are {words}", hint=hint) from error
    return [_reworded(invocation, store, each) for each in found]


def say(store: Store, oid: ObjectId) -> str:
    """Return what a commit says or does, on a line."""
    read = store.objects.read
    commit = read_commit(oid, read)
    said = history.summary(store, commit, 60)
    targets = [each for operation in commit.operations for each in ops.targets_of(operation, oid)]
    if len(targets) == 1 and not commit.message:
        try:
            message = context.fold_of(store, oid).entry(targets[0]).message
            said += f" ({message_line(message, read, 40)})"
        except (errors.NotFoundError, errors.FormatError):
            pass  # the address has to do
    return "".join(c if c.isprintable() else " " for c in said)


def _reworded(invocation: Invocation, store: Store, step: Step) -> Step:
    """Return a step of an edited list; whoever asks for another message without giving one is asked in an editor."""
    if step.deed != todo.REWORD or step.message not in ("", say(store, step.oid)):
        return step
    said = read_commit(step.oid, store.objects.read).message
    otherwise = "give the message behind the id, as `reword ID MESSAGE`"
    message = edited(invocation, f"{said}\n", "message.txt", otherwise).strip()
    if not message:
        raise usage_error("the message is empty, and nothing was done")
    return todo.Step(todo.REWORD, step.oid, message)
