"""What is said, and what of it is shown: the verbs that append, mark, reword and hide messages."""

from __future__ import annotations

from contextlib import contextmanager

from trace_store.history import writing
from trace_store.history.rewording import current_parts, reworded
from trace_store.objects.message import Message
from trace_store.repo.handle import Handle, name_of, several_targets
from trace_store.revision import resolve_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from trace_store.context.parsing import Given
    from trace_store.history.draft import Address, Content, Draft, Target
    from trace_store.history.writing import CommitResult
    from trace_store.objects.parts import Part


class Writing(Handle):
    """What is said: each verb is one commit on HEAD's branch."""

    def append(
        self, role: str, content: Content, *, private: bool = False, **fields: Any
    ) -> CommitResult:
        """Append one message as one commit; `fields` are those of `Message`.

        Private content is hashed with a salt, under a key of the user's own outside the repository: its id, which stays
        even when the content is purged, then tells nothing to those who guess it.

        Raises:
            InvalidMessageError: the message is not valid.
            PurgedError: its content was purged.
            SecretFoundError: it holds a secret, and `secrets` is "block"; nothing was written.
            StorageError: the disk failed; nothing was written.
        """
        return self.commit([Message(role, content, **fields)], private=private)

    def commit(
        self, messages: Sequence[Given], *, message: str = "", private: bool = False
    ) -> CommitResult:
        """Append messages as one commit; a provider's own form of a message will do, as in `Draft.extend`.

        Raises:
            As `append`.
        """
        salt = self._salt() if private else None
        result = writing.commit(
            self.store,
            messages,
            author=self.author,
            message=message,
            salt=salt,
            guard=self.guard,
        )
        self._schedule.seal_if_due()
        return result

    @contextmanager
    def batch(self, message: str = "", *, private: bool = False) -> Iterator[Draft]:
        """Gather operations into one commit; nothing is written when the block raises.

        With `private` all content in it is, as in `append`.

        Raises:
            InvalidOperationError: an operation names what the context does not hold.
        """
        with writing.batch(
            self.store,
            author=self.author,
            message=message,
            reword=self._reworded,
            salt=self._salt() if private else None,
            guard=self.guard,
        ) as draft:
            yield draft
        self._schedule.seal_if_due()

    def edit(self, target: Target, content: Content, *, private: bool = False) -> CommitResult:
        """Reword a message; earlier wordings stay readable.

        Args:
            target: the message.
            content: text, which takes the place of its text or of what its tool result says, while calls, images and
                reasoning stay; or all of its parts.
            private: as in `append`.

        Raises:
            MessageNotFoundError: the context does not hold the message.
            InvalidOperationError: text is given, and it has several tool results.
        """
        return self._one(lambda draft: draft.edit(target, content), private=private)

    def annotate(self, targets: Target | Sequence[Target], **marks: Any) -> CommitResult:
        """Set `priority`, `keep` patterns, `labels` and `unlabels` of messages; raises as `edit`."""
        return self._one(lambda draft: draft.annotate(several_targets(targets), **marks))

    def remove(self, targets: Target | Sequence[Target], *, ghost: bool = False) -> CommitResult:
        """Hide messages, leaving a short placeholder or nothing; raises as `edit`."""
        return self._one(lambda draft: draft.remove(several_targets(targets), ghost=ghost))

    def restore(
        self, targets: Target | Sequence[Target], *, version: int | None = None
    ) -> CommitResult:
        """Show hidden messages at their place again, or an earlier wording; raises as `edit`."""
        return self._one(lambda draft: draft.restore(several_targets(targets), version=version))

    def replace(
        self,
        targets: Target | Sequence[Target],
        messages: Sequence[Given],
        **origin: Any,
    ) -> CommitResult:
        """Let messages become others; `origin` is reason, model, prompt, sources. Raises as `edit`."""
        return self._one(lambda draft: draft.replace(several_targets(targets), messages, **origin))

    def set_tools(self, schemas: Sequence[Mapping[str, Any]]) -> CommitResult:
        """Set the tools that the model is offered."""
        return self._one(lambda draft: draft.set_tools(schemas))

    def record_usage(self, usage: Any, **request: Any) -> CommitResult:
        """Record what a provider reported; `request` is model, about, renderer, renderer_version, sent.

        Raises:
            InvalidInputError: the usage is of no known shape.
            RevisionNotFoundError: there is no commit that it is about.
        """
        if request.get("about") is not None:
            request["about"] = resolve_commit(self.store, name_of(request["about"]))
        return self._one(lambda draft: draft.record_usage(usage, **request))

    def _reworded(self, address: Address, text: str) -> Sequence[Part]:
        return reworded(current_parts(self.contexts, address), text)

    def _one(self, add: Callable[[Draft], object], *, private: bool = False) -> CommitResult:
        salt = self._salt() if private else None
        draft = writing.new_draft(self.store, self._reworded, salt, self.guard)
        add(draft)
        result = writing.write(self.store, draft, author=self.author)
        self._schedule.seal_if_due()
        return result
