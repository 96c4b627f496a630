"""What is said, and what of it is shown: the verbs that append, mark, reword and hide messages."""

from __future__ import annotations

from contextlib import contextmanager

from trace_store.history import commit as writing
from trace_store.history.draft import given_message
from trace_store.history.edit_text import current_parts, reworded
from trace_store.repo.handle import Handle, name_of, several_targets
from trace_store.revision import resolve_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from trace_store.history.draft import CommitResult, Content, Draft, Fact, Target
    from trace_store.objects.address import Address
    from trace_store.objects.parts import Part
    from trace_store.providers.documents import Given
    from trace_store.repo.handle import Revision


class Writing(Handle):
    """What is said: each verb is one commit on HEAD's branch."""

    def append(
        self,
        role: str | Given,
        content: Content | None = None,
        *,
        kind: str = "",
        name: str = "",
        model: str = "",
        id: str = "",
        private: bool = False,
    ) -> CommitResult:
        """Append one message as one commit; `kind`, `name`, `model` and `id` are those of `Message`.

        `append("user", "Hello")`; a message alone will do, too, or a provider's form of one:
        `append({"role": "user", "content": "Hello"})`.

        Private content is hashed with a salt, under a key of the user's own outside the repository: its id, which stays
        even when the content is purged, then tells nothing to those who guess it.

        Raises:
            InvalidMessageError: the message is not valid.
            PurgedError: its content was purged.
            SecretFoundError: it holds a secret, and `secrets` is "block"; nothing was written.
            StorageError: the disk failed; nothing was written.
        """
        message = given_message(role, content, kind=kind, name=name, model=model, id=id)
        return self.commit([message], private=private)

    def commit(
        self,
        messages: Sequence[Given],
        *,
        message: str = "",
        private: bool = False,
        meta: Mapping[str, Fact] | None = None,
        settings: Mapping[str, Fact] | None = None,
    ) -> CommitResult:
        """Append messages as one commit; a provider's own form of a message will do, as in `Draft.extend`.

        Args:
            messages: what to append.
            message: what to say about the commit.
            private: as in `append`.
            meta: facts about the commit, such as `{"ticket": "T-12"}`; `log(meta="ticket=T-12")` finds it.
            settings: what the messages were generated with, such as `{"temperature": 0.2}`; found alike.

        Raises:
            As `append`.
        """
        if meta or settings:
            with self.batch(message, private=private) as draft:
                draft.extend(messages)
                draft.configure(meta=meta, settings=settings)
            assert draft.result is not None
            return draft.result
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

    def edit(
        self,
        target: Target,
        content: Content,
        *,
        call: str = "",
        force: bool = False,
        private: bool = False,
    ) -> CommitResult:
        """Reword a message; earlier wordings stay readable.

        Args:
            target: the message.
            content: text, which takes the place of its text or of what its tool results say, while calls, images and
                reasoning stay; or all of its parts.
            call: the id of a call, or the beginning of one, for the text of its result alone.
            force: take away results, and calls that have some, where the new parts are without them.
            private: as in `append`.

        Raises:
            MessageNotFoundError: the context does not hold the message.
            InvalidOperationError: it has no result of that call; or the new parts lack a result of it, or a call that
                has one, and `force` is not given.
        """
        return self._one(
            lambda draft: draft.edit(target, content, call=call, force=force), private=private
        )

    def annotate(
        self,
        targets: Target | Sequence[Target],
        *,
        priority: str | None = None,
        keep: str | Sequence[str] | None = None,
        labels: str | Sequence[str] = (),
        unlabels: str | Sequence[str] = (),
    ) -> CommitResult:
        """Set what messages are marked with; what is not given stays.

        Args:
            targets: the messages.
            priority: "pinned", "important", "normal" or "skip".
            keep: patterns of what a summary must keep, in the place of those that there are.
            labels: labels to give.
            unlabels: labels to take.

        Raises:
            InvalidOperationError: there is no such priority, a label is bad, or nothing is set.
            As `edit`.
        """
        return self._one(
            lambda draft: draft.annotate(
                several_targets(targets),
                priority=priority,
                keep=keep,
                labels=labels,
                unlabels=unlabels,
            )
        )

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
        *,
        reason: str = "",
        model: str = "",
        prompt: str | None = None,
        sources: Sequence[Target] = (),
    ) -> CommitResult:
        """Let messages become others, which stand where the first of them stood.

        Args:
            targets: the messages.
            messages: what they become; none hides them.
            reason: why.
            model: the model that wrote the new ones.
            prompt: what that was asked.
            sources: the messages that it was shown.

        Raises:
            As `edit`.
        """
        return self._one(
            lambda draft: draft.replace(
                several_targets(targets),
                messages,
                reason=reason,
                model=model,
                prompt=prompt,
                sources=sources,
            )
        )

    def set_tools(self, schemas: Sequence[Mapping[str, Any]]) -> CommitResult:
        """Set the tools that the model is offered."""
        return self._one(lambda draft: draft.set_tools(schemas))

    def record_usage(
        self,
        usage: Any,
        *,
        model: str = "",
        about: Revision | None = None,
        renderer: str = "",
        renderer_version: int = 0,
        sent: bytes = b"",
    ) -> CommitResult:
        """Record what a provider reported.

        Args:
            usage: the provider's dictionary or object, or a whole response.
            model: the model that answered; of a whole response it is the one that this names.
            about: the commit whose context was sent; None is the one that HEAD is at.
            renderer: what wrote the request, and `renderer_version` its version.
            renderer_version: that.
            sent: the 32-byte hash of the exact bytes sent.

        Raises:
            InvalidInputError: the usage is of no known shape.
            RevisionNotFoundError: there is no commit that it is about.
        """
        oid = None if about is None else resolve_commit(self.store, name_of(about))
        return self._one(
            lambda draft: draft.record_usage(
                usage,
                model=model,
                about=oid,
                renderer=renderer,
                renderer_version=renderer_version,
                sent=sent,
            )
        )

    def _reworded(self, address: Address, text: str, call: str) -> Sequence[Part]:
        return reworded(current_parts(self.contexts, address), text, call)

    def _one(self, add: Callable[[Draft], object], *, private: bool = False) -> CommitResult:
        salt = self._salt() if private else None
        draft = writing.new_draft(self.store, self._reworded, salt, self.guard)
        add(draft)
        result = writing.write(self.store, draft, author=self.author)
        self._schedule.seal_if_due()
        return result
