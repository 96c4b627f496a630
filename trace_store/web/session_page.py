"""The page of a session: its messages in windows, its outline, its size, and what was done to it."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice, pairwise
from typing import Any

from trace_store.base.frozen import replace
from trace_store.context.compiled import CompiledMessage, tokens_before
from trace_store.context.wording import excerpt
from trace_store.contracts.ref_names import CHECKPOINTS, FORKS, RECORDS, RUNS
from trace_store.errors import MessageNotFoundError
from trace_store.exporters.contract import SKIPPED, ExportSession, Losses, SessionTurn
from trace_store.exporters.html.markup import Markup, concat, element, prose
from trace_store.exporters.html.page import Messages, anchor
from trace_store.exporters.overview import TITLE_CHARACTERS, count_noun
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.parts import Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.repo.repository import Repo
from trace_store.sessions.requests import SUMMARY
from trace_store.web import shell
from trace_store.web.prompt_cache import Breach, breaches
from trace_store.web.run_page import run_line
from trace_store.web.shell import Page, facts, link, short, url

WINDOW = 100
"""Messages of one request."""
MARGIN = 20
"""Messages beyond a window that are read to link calls with their results."""
LONGEST = 40_000
"""Characters of one message that are sent; the rest is fetched on request."""
PROMPTS, SCANNED = 500, 20_000
"""Most entries of the outline, and the last messages that it is made of."""
STRIP = 120
"""Most cells of the strip."""
WARM = 1_000
"""With more messages than this, the strip shows tokens alone."""
LEVELS = 9
_APPENDS = {ops.ADD, ops.TOOLS, ops.USAGE, ops.CONFIG}
"""Operations that change no earlier message."""


class _Shortened:
    """A message of which only the first characters are shown."""

    def __init__(self, message: CompiledMessage) -> None:
        self._message = message
        self.parts = _cut(message.parts, LONGEST)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._message, name)

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))


class WebMessages(Messages):
    """Messages of a page: links to contexts, and only the start of very long ones, except for one."""

    def __init__(
        self,
        session: ExportSession,
        name: str,
        whole: str = "",
        broken: Mapping[str, Breach] | None = None,
    ) -> None:
        super().__init__(session, Losses())
        self._name = name
        self._whole = whole
        self._broken = broken or {}

    def _message(self, turn: SessionTurn) -> Any:
        is_whole = anchor(turn) == self._whole or length_of(turn.message) <= LONGEST
        return turn.message if is_whole else _Shortened(turn.message)

    def _notes(self, turn: SessionTurn) -> Iterator[Markup]:
        rest, address = length_of(turn.message) - LONGEST, anchor(turn)
        if rest > 0 and address != self._whole:
            more = f"Show the whole message, {rest:,} more characters"
            yield link(more, "/message", class_="whole", name=self._name, at=address)

    def _links(self, turn: SessionTurn) -> Iterator[Markup]:
        if turn.is_summary or turn.reason:
            yield link(
                f"show the {count_noun(turn.replaced, 'message')}",
                *(shell.SESSION, "jump"),
                name=self._name,
                hidden="1",
                at=anchor(turn),
            )
        if turn.hidden != SKIPPED:
            answers = turn.message.role == "assistant"
            target = {
                "name": self._name,
                "commit": turn.commit.hex(),
                "until": anchor(turn) if answers else "",
            }
            yield link("what it saw" if answers else "context", shell.CONTEXT, "jump", **target)
            breach = self._broken.get(anchor(turn))
            if breach is not None:
                href = url(shell.CONTEXT, **target)
                words = "prompt cache broke"
                yield element("a", words, href=href, class_="jump broke", title=breach.text)


def length_of(message: CompiledMessage) -> int:
    """Return the characters of a message's text, arguments and results."""
    return sum(map(_length, message.parts))


def _length(part: Part) -> int:
    if isinstance(part, Text | Reasoning):
        return len(part.text)
    if isinstance(part, ToolCall):
        return len(part.arguments)
    if isinstance(part, Opaque):
        return len(part.data)
    return sum(map(_length, part.content)) if isinstance(part, ToolResult) else 0


def _cut(parts: Iterable[Part], most: int) -> tuple[Part, ...]:
    """Return parts with the first characters of their content; images stay."""
    found: list[Part] = []
    for part in parts:
        length = _length(part)
        found.append(part if length <= most else _start_of(part, most))
        most = max(0, most - length)
    return tuple(found)


def _start_of(part: Part, most: int) -> Part:
    if isinstance(part, Reasoning):
        return Reasoning(part.text[:most], part.signature)
    if isinstance(part, ToolCall):
        return ToolCall(part.id, part.name, part.arguments[:most], "text")
    if isinstance(part, ToolResult):
        content = _cut(part.content, most)
        return ToolResult(part.call_id, content, part.is_error, call=part.call)
    if isinstance(part, Opaque):
        return Opaque(part.provider, part.data[:most])
    return Text(part.text[:most]) if isinstance(part, Text) else part


class SessionWindow:
    """Some messages of a session.

    It begins and ends so that no result is without its call: the elements of two windows beside each other never have
    the same message.

    Attributes:
        session: these messages, and some before and after them.
        start, stop: their places in the session.
        hidden: whether hidden messages are among them.
        html: their elements.
    """

    def __init__(
        self,
        repo: Repo,
        name: str,
        *,
        start: int | None = None,
        at: str = "",
        count: int = WINDOW,
        hidden: bool = False,
        before: int | None = None,
        link_to: str = "",
    ) -> None:
        """Read them.

        Args:
            repo: the repository.
            name: the session, as a branch.
            start: the place of the first message; None is the last `count`.
            at: the address of the message in the middle; overrides `start`.
            count: the number of messages, about.
            hidden: with hidden messages; they are also shown if the message `at` is one.
            before: leave out the messages from this place on.
            link_to: the branch that links name, if it is not `name`.

        Raises:
            RevisionNotFoundError, MessageNotFoundError: there is no such session or message.
        """
        first = None if start is None or at else max(0, start - MARGIN)
        read = functools.partial(
            repo.sessions.part, name, start=first, around=at, count=count + 2 * MARGIN
        )
        try:
            session, self.hidden = read(hidden=hidden), hidden
        except MessageNotFoundError:
            session, self.hidden = read(hidden=True), True
        if before is not None:
            session = replace(session, turns=session.turns[: max(0, before - session.start)])
        broken = _broken(repo, session.turns)
        messages = WebMessages(session, link_to or short(session.ref) or name, broken=broken)
        size = len(session.turns)
        begin = size - count if start is None else start - session.start
        begin = _place_of(session, at) - count // 2 if at else begin
        end = min(max(begin, 0) + count, size)
        inside = {
            place for last, host in messages.hosts.items() for place in range(host + 1, last + 1)
        }
        begin = max(begin, 0)
        while begin in inside:
            begin -= 1
        while end in inside:
            end += 1
        self.session = session
        self.start, self.stop = session.start + begin, session.start + end
        self.html = concat(messages.articles(begin, end))

    def facts(self) -> dict[str, int | str]:
        """Return what the script has to know of it."""
        return {
            "start": self.start,
            "stop": self.stop,
            "count": self.session.count,
            "tip": self.session.commit.hex(),
            "hidden": "1" if self.hidden else "",
        }


def _broken(repo: Repo, turns: Iterable[SessionTurn]) -> dict[str, Breach]:
    """Return what broke the prompt cache before answers, by the address of the first message of each."""
    firsts = {
        turn.commit: anchor(turn)
        for turn in reversed(tuple(turns))
        if turn.message.role == "assistant" and not turn.reason
    }
    found = breaches(repo, reversed(firsts))
    return {firsts[commit]: breach for commit, breach in found.items()}


def session_page(
    repo: Repo,
    name: str,
    *,
    at: str = "",
    start: int | None = None,
    hidden: bool = False,
    q: str = "",
) -> Page:
    """Return the page of a session.

    Args:
        repo: the repository.
        name: the session, as a branch.
        at: the address of a message, around which messages are shown; "" shows those from `start`.
        start: number of the first message, from 0; None shows the last ones.
        hidden: show hidden messages, too.
        q: words to mark.

    Raises:
        RevisionNotFoundError, MessageNotFoundError: there is no such session or message.
    """
    window = SessionWindow(repo, name or "HEAD", at=at, start=start, hidden=hidden)
    session = window.session
    name = short(session.ref) or name
    titles = repo.sessions.titles(session.ref) if session.ref else {}
    title = excerpt(titles.get(session.ref, name), TITLE_CHARACTERS)
    shown = element(
        "div",
        window.html,
        id="messages",
        class_="messages",
        data_name=name,
        **{f"data_{key}": str(fact) for key, fact in window.facts().items()},
    )
    empty = [] if session.count else [shell.nothing("This session has no messages.")]
    switches = _switches(session, name, "1" if window.hidden else "")
    return Page(
        title=title,
        top=shell.top(title, "", switches, class_="top stays"),
        main=concat([*empty, shown]),
        beside=concat(
            [_head_facts(session, name), element("div", shell.nothing("…"), id="outline")]
        ),
        watch=" ".join((session.ref, CHECKPOINTS, RUNS)),
        section=shell.SESSIONS,
        query=q,
    )


def messages(
    repo: Repo, name: str, *, start: int | None, at: str, count: int | None, hidden: bool
) -> dict[str, Any]:
    """Return some messages of a session as HTML, with their places and the commit that they are of."""
    most = min(count or WINDOW, WINDOW)
    window = SessionWindow(repo, name, start=start, at=at, count=most, hidden=hidden)
    return {"html": window.html, **window.facts()}


def news(repo: Repo, name: str, *, tip: str, start: int | None, hidden: bool) -> dict[str, Any]:
    """Return the messages after a place, or None as `html` if the earlier ones have changed since the commit `tip`."""
    entries = list(islice(repo.log(f"{tip}..{name}", first_parent=True), WINDOW))
    now = repo.resolve(name)
    parted = now.hex() != tip and not _leads_to(entries, tip)
    if parted or any(set(each.operations) - _APPENDS for each in entries):
        return {"html": None, "tip": now.hex()}
    return messages(repo, name, start=start or 0, at="", count=None, hidden=hidden)


def _leads_to(entries: list[Any], tip: str) -> bool:
    return bool(entries) and any(parent.hex() == tip for parent in entries[-1].parents)


def message(repo: Repo, name: str, at: str) -> dict[str, Any]:
    """Return one whole message as HTML, and its text."""
    read = functools.partial(repo.sessions.part, name, around=at, count=2 * MARGIN)
    try:
        session = read()
    except MessageNotFoundError:
        session = read(hidden=True)
    place = _place_of(session, at)
    shown = session.turns[place].message
    text = shown.text or "\n".join(p.text for p in shown.parts if isinstance(p, ToolResult))
    found = WebMessages(session, name, whole=anchor(session.turns[place]))
    return {"html": found.article(*found.turns[place]), "text": text}


def _place_of(session: ExportSession, address: str) -> int:
    """Return the place in `turns` of a message that is there."""
    birth, _, number = address.partition(".")
    held = (turn.message.address for turn in session.turns)
    return next(
        n
        for n, each in enumerate(held)
        if each.hex.startswith(birth) and each.number == int(number)
    )


def marks(repo: Repo, name: str) -> dict[str, Any]:
    """Return the checkpoints, forks and runs of a session, each as the address of a message and a line after it."""
    ref, found = shell.full(name), []
    for each in repo.checkpoints.list():
        source = repo.checkpoints.source(each) if each.branch in ("", ref) else None
        entries = islice(repo.log(source, first_parent=True), MARGIN) if source else ()
        last = next((entry.addresses[-1] for entry in entries if entry.message_count), None)
        if last is None:
            continue
        if each.ref.startswith(FORKS):
            fork = each.ref.removeprefix(FORKS)
            words = ["fork ", link(fork, shell.COMPARE, left=name, right=fork)]
        else:
            words = ["checkpoint ", link(each.name, shell.CHECKPOINTS)]
        found.append((str(last), element("p", *words, class_="point")))
    for info in repo.runs.list(session=name):
        if info.state.message:
            found.append((str(Address.parse(info.state.message)), run_line(info)))
    return {"marks": found}


def _head_facts(session: ExportSession, name: str) -> Markup:
    return facts(
        (
            ("agent", session.format),
            ("model", session.model),
            ("record" if name.startswith(RECORDS) else "branch", name),
        )
    )


def _switches(session: ExportSession, name: str, hidden: str) -> Markup:
    """Return links to other views of a session, and the switches that the style sheet implements."""
    shown = [
        element("label", element("input", type="checkbox", id=f"show-{each}", checked=True), each)
        for each in ("tools", "reasoning")
    ]
    shown.append(
        element("label", element("input", type="checkbox", id="show-marks"), "Markdown marks")
    )
    shown.append(link("what the model sees", shell.CONTEXT, name=name, commit=session.commit.hex()))
    shown.append(link("beginning", shell.SESSION, name=name, start="0", hidden=hidden))
    label = "without hidden" if hidden else "with hidden"
    shown.append(link(label, shell.SESSION, name=name, hidden="" if hidden else "1"))
    return element("div", *shown, class_="switches")


def outline(repo: Repo, name: str, *, hidden: bool) -> dict[str, Any]:
    """Return the outline of a session as HTML: its size, where its tokens are, summary, and prompts.

    Its cost does not grow with the session.
    """
    session = repo.sessions.part(name, count=1)
    prompts: list[CompiledMessage] = []
    messages, first = session.context.messages, max(0, len(session.context) - SCANNED)
    for stop in range(len(messages), first, -WINDOW):
        some = reversed(messages[max(first, stop - WINDOW) : stop])
        prompts += [each for each in some if each.role == "user" and each.kind == "dialogue"]
        if len(prompts) > PROMPTS:
            break
    is_all = len(prompts) <= PROMPTS and not first
    items = []
    for each in reversed(prompts[:PROMPTS]):
        target = {"name": name, "hidden": "1" if hidden else "", "at": str(each.address)}
        said = element("span", excerpt(each.text, 80) or "…", dir="auto")
        items.append(element("li", element("a", said, href=url(shell.SESSION, **target))))
    label = "Prompts" if is_all else f"The last {count_noun(len(items), 'prompt')}"
    heading = [element("h2", label), element("ol", *items)] if items else []
    size = facts((("messages", f"{len(session.context):,}"),))
    parts = [size], _gauge(repo, session), _strip(repo, session, name)
    return {"html": concat([*chain(*parts), _history(name), *heading])}


def _gauge(repo: Repo, session: ExportSession) -> Iterator[Markup]:
    """Yield the size of the context, beside the session's limit or the repository's budget, and of its messages."""
    limit = repo.store.config.budget or 0
    if session.ref and (opened := repo.sessions.open(session.ref).facts).type:
        limit = opened.limit
    context = session.context
    label = f"{context.token_count:,}{f' of {limit:,}' if limit else ''} tokens"
    meter = element("meter", aria_label=label, max=str(limit), value=str(context.token_count))
    if context.reported_token_count is None:
        yield element("p", f"{label}, estimated", *([meter] if limit else []))
        return
    what = "with what came since" if context.token_source.endswith("+estimate") else "reported"
    yield element("p", f"last request, {what}: {label}", *([meter] if limit else []))
    yield element("p", f"its messages: about {context.message_part:,} tokens")


def _strip(repo: Repo, session: ExportSession, name: str) -> Iterator[Markup]:
    """Yield a strip of cells, each some messages; the height is their tokens, the colour how much they are used."""
    context, count = session.context, len(session.context)
    if count < 2:
        return
    heat = repo.compression.heat(context) if count <= WARM else []
    step = -(-count // STRIP)
    places = [*range(0, count, step), count]
    totals = [tokens_before(context, place) for place in places]
    sums = [after - before for before, after in pairwise(totals)]
    largest, cells = max(*sums, 1), []
    for at, tokens in zip(places, sums, strict=False):
        warm = max(heat[at : at + step], default=0.0)
        note = f"message {at + 1}: {tokens:,} tokens" + (f", heat {warm:.0%}" if heat else "")
        classes = f"h{-(-tokens * LEVELS // largest)} w{round(warm * 4)}"
        target = url(shell.SESSION, name=name, at=str(context.messages[at].address))
        cells.append(element("a", class_=classes, href=target, title=note, tabindex="-1"))
    yield element("h2", "Tokens and heat" if heat else "Tokens")
    yield element("div", *cells, class_="strip")


def _history(name: str) -> Markup:
    """Return a closed summary section, whose content is fetched when it is opened."""
    label = element("summary", element("b", "Summary and compactions"))
    source = link("Show", "/summary", name=name)
    return element("details", label, source, class_="summaries fetched")


def summary(repo: Repo, name: str) -> dict[str, Any]:
    """Return the summaries that the model sees, and the compactions, as HTML."""
    session = repo.sessions.part(name, count=1)
    compactions = repo.sessions.open(session.ref).history() if session.ref else []
    records = list(session.context.view.messages())
    last_of = {each.home_commit: at for at, each in enumerate(records)}
    # An agent writes its summary as the last message of a compaction.
    last = [last_of[each.commit] for each in reversed(compactions) if each.commit in last_of]
    shown = [at for at, each in enumerate(records) if each.kind == SUMMARY]
    texts = dict.fromkeys(session.context.messages[at].text for at in [*shown, *last])
    parts = [element("div", prose(text), class_="prose", dir="auto") for text in texts if text]
    parts += [
        element(
            "p",
            f"{number}. {each.before:,} to {each.after:,} tokens by {each.summariser} ",
            shell.moment(each.time),
            " ",
            link("context", shell.CONTEXT, "jump", name=name, commit=each.commit.hex()),
        )
        for number, each in zip(range(len(compactions), 0, -1), compactions, strict=True)
    ]
    return {"html": concat(parts or [shell.nothing("This session was not compacted.")])}
