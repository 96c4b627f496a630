"""All other pages: lists, a context at a step, comparisons, trash, trajectories, search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise

from trace_store.base.ident import parse_moment
from trace_store.base.oid import ObjectId
from trace_store.checkpoints.comparison import Side, SideMessage, comparison_parts
from trace_store.context.compiled import CompiledContext
from trace_store.context.wording import excerpt
from trace_store.contracts.ref_names import CHECKPOINTS, FORKS, LINES, RUNS, TRAJECTORIES
from trace_store.errors import InvalidInputError, TraceError
from trace_store.exporters.html.markup import Markup, concat, element, preformatted
from trace_store.exporters.overview import count_noun, pretty
from trace_store.history.diff import ADDED, ContextDiff, MessageChange
from trace_store.repo.repository import Repo
from trace_store.runs.steps import RUNNING
from trace_store.search.query import Hit
from trace_store.sessions.listing import SessionInfo
from trace_store.trajectories.views.page import page_parts
from trace_store.trajectories.views.view import text_of
from trace_store.trajectories.why import Reason
from trace_store.web import shell
from trace_store.web.prompt_cache import MOST_STEPS, breach_of, request_before
from trace_store.web.session_page import WINDOW, SessionWindow
from trace_store.web.shell import (
    Page,
    cards,
    counted,
    facts,
    field,
    form,
    full,
    link,
    moment,
    nothing,
    problem,
    select,
    short,
    table,
    titled,
    top,
)

ACTIVE_MILLISECONDS = 120_000
"""A session is active if its last message is younger than this."""
AT_WORK = (RUNNING, "active")
FILTERS = ("agent", "folder", "task", "state")
"""What the list of sessions can be filtered by, with choices."""
MOST_SESSIONS = 500
HITS = 100
MOST_REMOVED = 500
LARGEST = 10
CHANGES = 100
CHOICES = 1_000
NO_SESSIONS = "This repository has no sessions. `trace import --all` imports those of your agents."


def sessions_page(
    repo: Repo, *, q: str = "", since: str = "", until: str = "", **chosen: str
) -> Page:
    """Return the list of sessions, the active ones first; `chosen` are FILTERS with what a session must have."""
    found, now = repo.sessions.list(), repo.store.clock.now()
    agents = {each.ref: each.state for each in repo.agents.list() if not each.store}
    facts_of = {each.ref: _filtered_by(each, agents.get(each.ref, ""), now) for each in found}
    first, last, wrong = _range(since, until, now)
    shown = [
        each
        for each in found
        if all(text in ("", *facts_of[each.ref][name]) for name, text in chosen.items())
        and (first is None or each.ended >= first)
        and (last is None or each.began <= last)
        and all(word in _said(each) for word in q.casefold().split())
    ]
    shown.sort(key=lambda each: [state not in facts_of[each.ref]["state"] for state in AT_WORK])
    values = {name: {text for each in facts_of.values() for text in each[name]} for name in FILTERS}
    choices = [
        select(name, name, sorted({*values[name], text} - {""}), text)
        for name, text in ((name, chosen.get(name, "")) for name in FILTERS)
        if values[name] or text
    ]
    asked = form(
        shell.SESSIONS,
        "Filter sessions",
        field("q", q, "Title, prompt or id", "search"),
        *choices,
        field("since", since, "since: 2 days ago"),
        field("until", until, "until: today"),
        button="Filter",
    )
    items = [_session(each, facts_of[each.ref]) for each in shown[:MOST_SESSIONS]]
    none = "No session matches the filter." if found else NO_SESSIONS
    main = [asked, *wrong, counted(shown, "session", MOST_SESSIONS), cards(items, none)]
    return Page(
        "Sessions",
        top("Sessions"),
        concat(main),
        watch=" ".join((*LINES, RUNS)),
        section=shell.SESSIONS,
        status=400 if wrong else 200,
    )


def _range(since: str, until: str, now: int) -> tuple[int | None, int | None, list[Markup]]:
    """Return the first and the last moment of a filter, and a sentence about each text that is not a time."""
    first = parse_moment(since, now) if since else None
    last = parse_moment(until, now, is_end=True) if until else None
    wrong = [
        problem(
            f"{name}: not a time: {text[:80]!r}, so it does not filter. Try 2026-03-02 or 2 days ago."
        )
        for name, text, found in (("since", since, first), ("until", until, last))
        if text and found is None
    ]
    return first, last, wrong


def _filtered_by(info: SessionInfo, agent_state: str, now: int) -> dict[str, list[str]]:
    """Return what FILTERS compare with."""
    facts = info.facts
    states = [
        "damaged" if info.damage else "",
        RUNNING if info.activity else "active" if now - info.ended < ACTIVE_MILLISECONDS else "",
        facts.state if facts else "",
        "closed" if facts and facts.closed else "",
        agent_state,
    ]
    given = {
        "agent": [info.agent],
        "folder": [info.folder],
        "task": [facts.task if facts else ""],
        "state": dict.fromkeys(states),
    }
    return {name: list(filter(None, texts)) for name, texts in given.items()}


def _said(info: SessionInfo) -> str:
    return f"{info.title}\n{info.prompt}\n{info.session}\n{info.ref}\n{info.folder}".casefold()


def _session(info: SessionInfo, known: Mapping[str, Sequence[str]]) -> Markup:
    name = short(info.ref)
    more = [
        name if info.session == name else "",  # forks have the title of their session
        info.agent,
        info.folder,
        *known["task"],
        count_noun(info.message_count, "message"),
        f"{info.hidden_count:,} hidden" if info.hidden_count else "",
        f"{info.token_count:,} tokens",
        count_noun(info.agents, "subagent") if info.agents else "",
        info.activity,
        info.damage,
    ]
    return element(
        "li",
        element(
            "h2",
            link(excerpt(info.name, 160) or name, shell.SESSION, name=name),
            *(element("span", each, class_=f"mark state-{each}") for each in known["state"]),
        ),
        element("p", " · ".join(filter(None, more)), " · ", moment(info.ended), class_="kicker"),
    )


def context_page(
    repo: Repo, name: str, commit: str, start: int | None = None, until: str = ""
) -> Page:
    """Return what the model saw at a commit, or before it wrote a message, and what changed since the step before.

    Args:
        repo: the repository.
        name: the branch that links lead to, or "".
        commit: the commit; "" is the tip of the branch.
        start: number of the first message that is shown.
        until: the address of a message: only what came before it.

    Raises:
        RevisionNotFoundError, MessageNotFoundError: there is no such commit or message.
    """
    oid = repo.resolve(f"{commit or name}^{{commit}}")
    context, entry = repo.compile(oid), next(iter(repo.log(oid, limit=1)))
    before = entry.parents[0] if entry.parents else None
    stop = len(context)
    if until:
        record = context.view.find(repo.message(until, oid).address)
        stop = 0 if record is None else record.ordinal - 1
    window = SessionWindow(repo, oid.hex(), start=start or 0, before=stop, link_to=name)
    steps = [_step("step before", name, before), _step("step after", name, _next(repo, name, oid))]
    if name:
        steps.append(link("session", shell.SESSION, name=name, at=until))
    paging = concat(_paging(name, oid, window, stop, until))
    title = (
        f"What the model saw before message {stop + 1}" if until else f"Context at {oid.short()}"
    )
    kicker = titled(repo, name)[name] if name else ""
    main = [
        element("div", *filter(None, steps), class_="switches"),
        _section("Tokens by part", [_parts(context, stop)]),
        *_tools(context),
        *_changes(repo, name, context, oid, before, stop),
        element("h2", "Messages, as the model was shown them"),
        paging,
        element("div", window.html, class_="messages"),
        paging,
    ]
    head = facts(
        (
            ("commit", oid.hex()),
            ("by", entry.author),
            ("did", ", ".join(entry.operations)),
            ("message", entry.message),
            ("messages", f"{stop:,}"),
            ("tokens", "" if until else f"{context.token_count:,} ({context.token_source})"),
        )
    )
    return Page(title, top(title, kicker, head), concat(main), watch=full(name) if name else "")


def _changes(
    repo: Repo,
    name: str,
    context: CompiledContext,
    oid: ObjectId,
    before: ObjectId | None,
    stop: int,
) -> Iterator[Markup]:
    """Yield the difference from the step before, and how much of the previous request is still in the prompt cache.

    The context before a message is a request, so both are the same for it.
    """
    if stop < len(context) and before is not None and len(repo.compile(before)) == stop:
        sent = request_before(repo, before)
        found = repo.diff(sent, before)
        yield _section("Since the request before", _difference(found, sent, found, name))
    else:
        found, sent = repo.diff(before, oid), request_before(repo, oid)
        cached = found if sent == before else repo.diff(sent, oid)
        if breach_of(cached) and breach_of(found):
            cached = found  # of several breaches, show this step's
        sent = None if sent == oid else sent
        yield _section("Since the step before", _difference(found, sent, cached, name))


def _section(title: str, content: Iterable[Markup]) -> Markup:
    return element("section", element("h2", title), *content, aria_label=title)


def _tools(context: CompiledContext) -> Iterator[Markup]:
    if context.tools:
        label = element("summary", element("b", count_noun(len(context.tools), "tool schema")))
        schemas = preformatted(pretty(list(context.tools)))
        yield element("details", label, schemas, class_="tools")


def _step(text: str, name: str, commit: ObjectId | None) -> Markup | None:
    return None if commit is None else link(text, shell.CONTEXT, name=name, commit=commit.hex())


def _next(repo: Repo, name: str, commit: ObjectId) -> ObjectId | None:
    """Return the commit of a branch that follows another one."""
    if not name:
        return None
    line = (entry.oid for entry in islice(repo.log(name, first_parent=True), MOST_STEPS))
    return next((after for after, oid in pairwise(line) if oid == commit), None)


def _paging(
    name: str, commit: ObjectId, window: SessionWindow, count: int, until: str
) -> Iterator[Markup]:
    if window.stop - window.start >= count:
        return
    query = {"name": name, "commit": commit.hex(), "until": until}
    places = [("earlier", max(0, window.start - WINDOW)), ("later", window.stop)]
    if window.stop + WINDOW < count:
        places.append(("last", count - WINDOW))
    links = [
        link(f"{text} messages", shell.CONTEXT, start=str(at), **query)
        for text, at in places
        if at != window.start and at < count
    ]
    said = f"{window.start + 1:,} to {window.stop:,} of {count:,}"
    yield element("div", said, *links, class_="switches")


def _parts(context: CompiledContext, stop: int) -> Markup:
    """Return a table of the tokens of each role and of the tools, and a list of the largest messages."""
    sizes = [tokens for tokens, _ in context.message_tokens(0, stop)]
    by_part: Counter[str] = Counter()
    numbers: Counter[str] = Counter()
    for message, tokens in zip(context.messages[:stop], sizes, strict=True):
        by_part[message.role] += tokens
        numbers[message.role] += 1
    if context.tools:
        by_part["tools"] = context.estimated_token_count - context.message_token_count
        numbers["tools"] = len(context.tools)
    whole = sum(by_part.values())
    rows = [
        [part, f"{numbers[part]:,}", f"{tokens:,}", _share(tokens, whole)]
        for part, tokens in by_part.most_common()
    ]
    rows.append(["together", f"{stop:,}", f"about {whole:,}", ""])
    largest = sorted(range(len(sizes)), key=lambda at: -sizes[at])[:LARGEST]
    items = [
        element(
            "li",
            element("a", f"message {at + 1}", href=f"#{context.messages[at].address}"),
            f": {sizes[at]:,} tokens, {context.messages[at].summary(60)}",
        )
        for at in largest
    ]
    label = element("summary", element("b", "Largest messages"))
    shown = table(("part", "number", "tokens", "share"), rows, "")
    return concat([shown, element("details", label, element("ol", *items))])


def _share(tokens: int, whole: int) -> str:
    return f"{tokens / whole:.0%}" if whole else ""


def _difference(
    diff: ContextDiff, sent: ObjectId | None, cached: ContextDiff, name: str
) -> Iterator[Markup]:
    """Yield a sentence about the prompt cache since the request `sent`, and the messages that differ."""
    yield element("p", *_cache_note(sent, cached, name))
    if diff.is_empty:
        yield nothing("The model saw the same.")
        return
    items = [_change(each, name) for each in diff.changes[:CHANGES]]
    if len(diff.changes) > CHANGES:
        items.append(element("li", f"and {len(diff.changes) - CHANGES:,} more"))
    yield element("ul", *items, class_="changes")


def _cache_note(sent: ObjectId | None, diff: ContextDiff, name: str) -> Iterator[str]:
    """Yield what a provider's prompt cache still serves, and what broke it."""
    if sent is None:
        yield f"Nothing was sent before; {diff.tokens_after:,} tokens are new."
        return
    breach = breach_of(diff)
    if breach is None:
        new = diff.tokens_after - diff.tokens_before
        yield f"All that was sent before stays in the prompt cache; {new:,} tokens are new."
        return
    kept = f"{diff.tokens_reused:,} of {diff.tokens_before:,} tokens stay in it"
    yield f"The prompt cache breaks: {breach.text}. {kept}, and {diff.tokens_new:,} are read again. "
    if breach.commit is not None:
        yield link("the step that broke it", shell.CONTEXT, name=name, commit=breach.commit.hex())


def _change(change: MessageChange, name: str) -> Markup:
    text = f"{', '.join(change.kinds)}: {change.message.summary(120) or change.message.role} "
    jump = link(
        f"{change.tokens_after - change.tokens_before:+,} tokens",
        shell.SESSION,
        "jump",
        name=name,
        at=str(change.address),
    )
    words = [
        element({"-": "del", "+": "ins"}[sign], said) if sign in "-+" else said
        for sign, said in change.words or ()
    ]
    body = [element("p", *words, dir="auto", class_="words")] if words else []
    mark = "+" if ADDED in change.kinds else "−" if change.after is None else "~"
    return element("li", element("b", mark), f" {text}", jump if name else "", *body)


def compare_page(repo: Repo, left: str, right: str) -> Page:
    """Return two branches side by side, or a form to choose them."""
    names = _choices(repo)
    asked = form(
        shell.COMPARE,
        "Branches to compare",
        select("left", "branch", names, left),
        select("right", "branch", names, right),
        button="Compare",
    )
    if not (left and right):
        return Page("Compare", top("Compare"), asked, section=shell.COMPARE)
    head, shown = comparison_parts(repo.forks.compare(left, right), _side_message, names)
    title = f"{names.get(left, left)} and {names.get(right, right)}"
    watch = f"{full(left)} {full(right)}"
    return Page(title, head, concat([asked, shown]), watch=watch, section=shell.COMPARE)


def _choices(repo: Repo) -> dict[str, str]:
    """Return the names of branches to choose from, and what they are called."""
    return titled(repo, *(each.name for each in repo.branches.list()[:CHOICES]))


def _side_message(side: Side, message: SideMessage) -> Markup:
    """Return a message of one branch, with a link to it, and one that fetches all of it."""
    target = {"name": side.name, "at": str(message.address)}
    return element(
        "section",
        element(
            "p",
            element("b", message.role, class_=f"role {message.role}"),
            link("in the session", shell.SESSION, class_="jump", **target),
            link("whole message", "/message", class_="jump whole", **target),
        ),
        element("p", message.text, dir="auto"),
        class_="side",
    )


def checkpoints_page(repo: Repo) -> Page:
    """Return the list of checkpoints, the newest first."""
    found = sorted(repo.checkpoints.list(), key=lambda each: -each.time)
    titles = titled(repo, *{short(each.branch) for each in found if each.branch})
    rows = []
    for each in found:
        branch = short(each.branch)
        source = repo.checkpoints.source(each)
        links = (
            [link("context", shell.CONTEXT, "jump", name=branch, commit=source.hex())]
            if source
            else []
        )
        if each.ref.startswith(FORKS):
            fork = each.ref.removeprefix(FORKS)
            links.append(link("compare", shell.COMPARE, "jump", left=branch, right=fork))
        kind = "automatic" if each.is_automatic else each.trigger
        session = [link(titles[branch], shell.SESSION, name=branch)] if branch else []
        rows.append(
            [
                element("b", each.name),
                f"{each.form}, {kind}",
                concat(session),
                excerpt(each.reason, 120),
                moment(each.time),
                concat(links),
            ]
        )
    heads = ("name", "kind", "branch", "reason", "time", "show")
    main = table(heads, rows, "There are no checkpoints.")
    return Page(
        "Checkpoints", top("Checkpoints"), main, watch=CHECKPOINTS, section=shell.CHECKPOINTS
    )


def trash_page(repo: Repo, name: str) -> Page:
    """Return the trash: messages that sessions hide, and refs that were deleted; `name` is one session, "" is all."""
    sessions = [short(each.ref) for each in repo.sessions.list() if each.hidden_count]
    names = titled(repo, *dict.fromkeys(filter(None, [*sessions, name])))
    asked = form(shell.TRASH, "Session", select("name", "session", names, name), button="Show")
    found = [
        each
        for session in ([name] if name else sessions)
        for each in repo.trash.list(kinds=("message",), ref=session).messages
    ]
    found.sort(key=lambda each: -each.time)
    messages = [
        [
            link(
                each.text or str(each.address),
                shell.SESSION,
                name=each.branch,
                at=str(each.address),
                hidden="1",
            ),
            _restore(str(each.address), each.branch),
            link(names[each.branch], shell.SESSION, name=each.branch),
            each.role,
            f"{each.token_count:,}",
            moment(each.time),
        ]
        for each in found[:MOST_REMOVED]
    ]
    refs = [
        [
            element("b", each.name),
            _restore(each.ref),
            each.kind,
            each.text,
            moment(each.time),
        ]
        for each in repo.trash.list(kinds=("branch", "tag", "checkpoint")).refs
        if not each.exists  # the earlier tips of others are what Undo and Redo are for
    ]
    main = [
        asked,
        element("h2", "Removed messages"),
        *([counted(found, "message", MOST_REMOVED)] if found else []),
        table(
            ("message", "action", "session", "role", "tokens", "removed"),
            messages,
            "No message was removed.",
        ),
        element("h2", "Deleted branches, tags and checkpoints"),
        table(("name", "action", "kind", "last commit", "deleted"), refs, "Nothing was deleted."),
    ]
    return Page("Trash", top("Trash"), concat(main), watch="refs/", section=shell.TRASH)


def _restore(entry: str, session: str = "") -> Markup:
    """Return a button, which works only where the page has actions; elsewhere the style sheet hides it."""
    return element(
        "button", "Restore", class_="restore", type="button", value=entry, data_session=session
    )


def trajectories_page(repo: Repo, *, q: str = "", why: str = "") -> Page:
    """Return the list of trajectories, decisions that match words, and the decisions behind a piece of code."""
    asked = form(
        shell.TRAJECTORIES,
        "Find decisions",
        field("q", q, "Words of a decision", "search"),
        field("why", why, "Why: FILE:LINE or COMMIT"),
        button="Find",
    )
    main = [asked]
    if why:
        main += [element("h2", f"Why {why}"), *_reasons(repo, why)]
    elif q:
        hits = repo.trajectories.search(q, limit=HITS)
        items = [
            element(
                "li",
                link(each.state.title or each.state.id, shell.TRAJECTORY, id=each.state.id),
                element(
                    "p",
                    *_marked(each.snippet.text, each.snippet.start, each.snippet.end),
                    dir="auto",
                ),
            )
            for each in hits
        ]
        main.append(cards(items, "No event matches."))
    else:
        rows = [
            [
                link(each.title or each.id, shell.TRAJECTORY, id=each.id),
                each.status,
                f"{each.count('decision'):,}",
                ", ".join(agent.name for agent in each.agents),
                moment(each.updated),
            ]
            for each in repo.trajectories.list(limit=MOST_SESSIONS)
        ]
        heads = ("trajectory", "status", "decisions", "agents", "last event")
        main.append(table(heads, rows, "There are no trajectories."))
    return Page(
        "Trajectories",
        top("Trajectories"),
        concat(main),
        watch=TRAJECTORIES,
        section=shell.TRAJECTORIES,
    )


def _reasons(repo: Repo, target: str) -> Iterator[Markup]:
    try:
        found = repo.trajectories.why(target, folder=repo.store.folder or ".")
    except TraceError as error:
        yield problem(f"{error.message}.")
        return
    if not found:
        yield nothing("No trajectory is linked to it.")
    for reason in found:
        yield _reason(reason)


def _reason(reason: Reason) -> Markup:
    decisions = [
        element(
            "li",
            element("b", each.event.content),
            element("p", text_of(each.event, "reasoning"), dir="auto"),
        )
        for each in reason.decisions
    ]
    state = reason.trajectory
    return element(
        "section",
        element("h3", link(state.title or state.id, shell.TRAJECTORY, id=state.id)),
        element(
            "p", f"{reason.commit.id[:12]} {reason.commit.subject} ({reason.how})", class_="kicker"
        ),
        element("ul", *decisions),
        class_="session",
    )


def trajectory_page(repo: Repo, id: str) -> Page:
    """Return one trajectory: chapters, decisions, retrospective.

    Raises:
        NotFoundError: there is no such trajectory.
    """
    view = repo.trajectories.exports.view(id)
    head, outline, main = page_parts(view)
    return Page(view.title, head, main, outline, watch=TRAJECTORIES, section=shell.TRAJECTORIES)


def search_page(
    repo: Repo, *, q: str = "", session: str = "", role: str = "", tool: str = "", since: str = ""
) -> Page:
    """Return the messages that match a query, each with the text around the hit."""
    asked = form(
        shell.SEARCH,
        "Search",
        field("q", q, "Words", "search"),
        select("role", "role", ("user", "assistant", "tool", "system"), role),
        field("tool", tool, "tool"),
        field("session", session, "session"),
        field("since", since, "since: 2 days ago"),
        button="Search",
    )
    first, _, wrong = _range(since, "", repo.store.clock.now())
    main = [asked, *wrong]
    if q.strip():
        try:
            hits = repo.search(
                q, limit=HITS, hidden=False, session=session, role=role, tool=tool, since=first
            )
        except InvalidInputError as error:
            return Page(
                "Search",
                top("Search"),
                concat([*main, problem(f"{error.message}.")]),
                query=q,
                status=400,
            )
        titles = repo.sessions.titles(*{each.ref for each in hits})
        label = count_noun(len(hits), "hit") + (", the newest" if len(hits) == HITS else "")
        main.append(element("p", label, class_="kicker"))
        main.append(
            element("ul", *(_hit(each, titles[each.ref], q) for each in hits), class_="cards hits")
        )
    status = 400 if wrong else 200
    title = f"{q} · Search" if q else "Search"
    return Page(title, top("Search"), concat(main), query=q, status=status)


def _hit(hit: Hit, title: str, query: str) -> Markup:
    name = short(hit.ref)
    snippet = hit.snippet
    said = _marked(snippet.text, snippet.start, snippet.end)
    more = [hit.role, "edited" if hit.is_edit else "", excerpt(title, 80)]
    return element(
        "li",
        element(
            "h2",
            element(
                "a", *said, href=shell.url(shell.SESSION, name=name, at=str(hit.address), q=query)
            ),
        ),
        element("p", " · ".join(filter(None, more)), " · ", moment(hit.time), class_="kicker"),
    )


def _marked(text: str, start: int, end: int) -> list[str]:
    return [text[:start], element("mark", text[start:end]) if end > start else "", text[end:]]


def error_page(status: int, message: str) -> Page:
    """Return a page that says what is wrong."""
    title = "Not found" if status == 404 else "Error"
    return Page(title, top(title), nothing(message), status=status)
