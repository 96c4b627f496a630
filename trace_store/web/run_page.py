"""Pages of live runs: which there are, and the timeline of one."""

from __future__ import annotations

from collections.abc import Iterator

from trace_store.context.wording import excerpt
from trace_store.contracts.ref_names import RUNS
from trace_store.exporters.html.markup import Markup, concat, element, preformatted
from trace_store.exporters.overview import TITLE_CHARACTERS, count_noun
from trace_store.repo.repository import Repo
from trace_store.runs.reading import RunInfo
from trace_store.runs.steps import INTERRUPTED, STATES, StepRecord, StepSource
from trace_store.web import shell
from trace_store.web.shell import (
    Page,
    cards,
    counted,
    facts,
    form,
    link,
    moment,
    nothing,
    select,
    short,
    top,
)

STEPS = 200
"""Steps of one page."""
MOST_RUNS = 500
FOLDED_LINES = 40
_WEB = ("http://", "https://")


def runs_page(repo: Repo, *, state: str = "", agent: str = "") -> Page:
    """Return the list of runs, those that run first."""
    every = repo.runs.list()
    found = [
        each for each in every if state in ("", each.status) and agent in ("", each.state.agent)
    ]
    asked = form(
        shell.RUNS,
        "Filter runs",
        select("state", "state", STATES, state),
        select("agent", "agent", sorted({each.state.agent for each in every}), agent),
        button="Filter",
    )
    items = [run_card(each) for each in found[:MOST_RUNS]]
    none = "No run matches the filter." if every else "No agent has recorded a run here."
    main = [asked, counted(found, "run", MOST_RUNS), cards(items, none)]
    return Page("Runs", top("Runs"), concat(main), watch=RUNS, section=shell.RUNS)


def run_card(info: RunInfo) -> Markup:
    """Return a run in a list."""
    state = info.state
    more = [state.agent, short(state.session), count_noun(state.step_count, "step")]
    more += [f"{state.failed:,} failed" if state.failed else "", _tokens(state.tokens)]
    last = f"{state.last}. {state.last_title or state.last_type}" if state.last else ""
    return element(
        "li",
        element(
            "h2",
            link(excerpt(state.name, TITLE_CHARACTERS), shell.RUN, id=info.id),
            _status(info.status),
        ),
        *([element("p", last, dir="auto")] if last and info.is_running else []),
        element("p", " · ".join(filter(None, more)), " · ", moment(info.seen), class_="kicker"),
    )


def run_line(info: RunInfo) -> Markup:
    """Return a run as a line beside the message that started it."""
    said = count_noun(info.state.step_count, "step")
    name = link(excerpt(info.state.name, 80), shell.RUN, id=info.id)
    now = f", {info.activity}" if info.is_running else ""
    return element("p", "run ", name, f": {info.status}, {said}{now}", class_="point")


def run_page(repo: Repo, id: str, start: int | None = None) -> Page:
    """Return the timeline of a run: the last steps, or those from a position on.

    Raises:
        RefNotFoundError: there is no such run.
    """
    found = repo.runs.read(id, start=None if start is None else start + 1, limit=STEPS)
    state, first = found.info.state, found.earlier
    places = [
        link(
            f"steps {at + 1:,} to {min(at + STEPS, state.step_count):,}",
            shell.RUN,
            id=state.id,
            start=str(at),
        )
        for at in sorted({max(0, first - STEPS), first + STEPS} - {first})
        if at < state.step_count
    ]
    is_over = not found.info.is_running
    shown = [_step(each, state.session, is_over=is_over) for each in found.steps]
    steps = element(
        "div",
        *(shown or [nothing("No step yet.")]),
        id="steps",
        class_="steps" if is_over else "steps live",
        data_name=state.id,
    )
    main = [element("div", *places, class_="switches")] if places else []
    main.append(steps)
    latest = f"{shell.url(shell.RUN, id=state.id)}#step-{state.step_count}"
    links = [
        element("a", "latest step", href=latest, class_="latest") if shown else Markup(""),
        link("session", shell.SESSION, name=short(state.session)) if state.session else Markup(""),
        _message(state.message, state.session, "the message that started it"),
    ]
    head = element(
        "div",
        facts(
            (
                ("status", found.info.status),
                ("agent", state.agent),
                ("steps", f"{state.step_count:,}"),
                ("tokens", _tokens(state.tokens)),
                ("took", state.lasted(0) if state.ended else ""),
                ("error", state.error),
                ("replaced by", state.superseded_by),
            )
        ),
        element(
            "p",
            *("began ", moment(state.started), ", last seen ", moment(found.info.seen)),
            class_="began",
        ),
        element("div", *filter(None, links), class_="switches"),
    )
    return Page(
        excerpt(state.name, TITLE_CHARACTERS),
        top(state.name, "run", head),
        concat(main),
        watch=f"{RUNS}{state.id}",
        section=shell.RUNS,
    )


def _step(step: StepRecord, session: str, *, is_over: bool) -> Markup:
    """Return a step of a timeline. The script shows streamed text in the element `text-N` of a running step."""
    status = INTERRUPTED if step.is_running and is_over else step.status
    kicker = [
        step.type.replace("_", " "),
        step.took,
        _tokens(step.tokens),
        step.model,
        f"part of {step.parent}" if step.parent else "",
        f"tries {step.retries} again" if step.retries else "",
    ]
    parts = [
        element(
            "header",
            element("h2", f"{step.number}. {step.name}"),
            _status(status),
            element("span", " · ".join(filter(None, kicker)), class_="kicker"),
            moment(step.started),
        )
    ]
    if step.is_running and not is_over:
        parts.append(element("div", id=f"text-{step.number}", class_="stream", dir="auto"))
    if step.error:
        parts.append(element("p", step.error, class_="failed", dir="auto"))
    if step.content:
        parts.append(_content(step.content))
    parts += _sources(step.sources)
    if step.substeps:
        items = [
            element(
                "li",
                each.title,
                f" ({each.error})" if each.error else f": {each.content}" if each.content else "",
            )
            for each in step.substeps
        ]
        parts.append(element("ul", *items, class_="substeps"))
    parts.append(_message(step.message, session, "the message"))
    label = f"Step {step.number}, {status}"
    classes = f"step {status}{' part' if step.parent else ''}"
    return element(
        "article",
        *filter(None, parts),
        id=f"step-{step.number}",
        class_=classes,
        tabindex="-1",
        aria_label=label,
    )


def _content(content: str) -> Markup:
    lines = content.count("\n") + 1
    if lines <= FOLDED_LINES:
        return preformatted(content)
    label = element("summary", count_noun(lines, "line"))
    return element("details", label, preformatted(content))


def _sources(sources: tuple[StepSource, ...]) -> Iterator[Markup]:
    """Yield the list of a step's sources; only http and https addresses become links."""
    items = []
    for each in sources:
        title = each.title or each.url
        if each.url.startswith(_WEB):
            place = element("a", title, href=each.url, rel="noreferrer noopener")
            host = each.url.split("/")[2]
            items.append(element("li", place, element("span", f" {host}", class_="kicker")))
        else:
            items.append(
                element("li", title if title == each.url else f"{title} {each.url}".strip())
            )
    if items:
        yield element("ul", *items, class_="sources")


def _message(address: str, session: str, label: str) -> Markup:
    """Return a link to a message in the session of the run, if there is one."""
    if not (address and session):
        return Markup("")
    return link(label, shell.SESSION, "jump", name=short(session), hidden="1", at=address)


def _status(status: str) -> Markup:
    return element("span", status, class_=f"mark state-{status}")


def _tokens(tokens: tuple[tuple[str, int], ...]) -> str:
    """Return token counts in words, such as `900 input, 40 output tokens`."""
    if not tokens:
        return ""
    return (
        ", ".join(
            f"{count:,} {name}" if name != "total" else f"{count:,}" for name, count in tokens
        )
        + " tokens"
    )
