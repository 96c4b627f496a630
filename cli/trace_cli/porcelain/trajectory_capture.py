"""Subcommands of `trace trajectory` that find events in the output of agents."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import EXIT_INVALID, EXIT_OK, usage_error
from trace_cli.porcelain.advice import asked_model
from trace_cli.porcelain.common import JSON, QUIET, SECRETS, finish, opened
from trace_cli.porcelain.input import places_in
from trace_cli.porcelain.trajectory import AGENT, TRAJECTORY
from trace_cli.porcelain.trajectory_show import event_text
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import short_address
from trace_cli.render.tables import counted, paint
from trace_cli.runtime import Invocation
from trace_store.trajectories.capture import BadBlock
from trace_store.trajectories.recording import Recorded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results, ResultsAndCode
    from trace_store.trajectories.proposals import Proposal

PIECE = 64 * 1024
STRICT = Option("--strict", "strict", "Exit with 7 if a block is bad")


@takes(
    Argument("REVISION", "branch", "The branch (default: HEAD's)", OPTIONAL, completes="REVISION"),
    Option("--all", "all", "Scan all branches"),
    TRAJECTORY,
    STRICT,
    SECRETS,
    JSON,
    QUIET,
)
def capture(
    invocation: Invocation,
    *,
    branch: str | None,
    all: bool,
    trajectory: str,
    strict: bool,
    secrets: str,
) -> ResultsAndCode:
    """Record the blocks in agents' messages.

    A block is `[[TRAJECTORY:decision]] {"question": "Where?", "chosen": "in memory"} [[/TRAJECTORY]]`, with any type of
    event, or `[[RETROSPECTIVE]] summary: Done [[/RETROSPECTIVE]]`. Its body is JSON, or lines `field: value`. Each
    block is recorded once, and only messages since the last scan are read. After `trace config trajectory_capture on`,
    each commit and import records the blocks in its messages.

        trace trajectory capture --all
    """
    if branch is not None and all:
        raise usage_error("give REVISION or --all, not both")
    with opened(invocation, secrets=secrets) as repo:
        capturing, where = repo.trajectories.capture, {"trajectory": trajectory}
        found = capturing.scan_all(**where) if all else capturing.scan(branch or "HEAD", **where)
        finish(invocation, repo)
    yield found, _lines(invocation, found.recorded, "no new blocks")
    _report_bad_blocks(invocation, found.bad)
    return EXIT_INVALID if strict and found.bad else EXIT_OK


@takes(
    Option("--tee", "tee", "Copy the input to standard output, unchanged"),
    TRAJECTORY,
    AGENT,
    STRICT,
    SECRETS,
    QUIET,
)
def feed(
    invocation: Invocation,
    *,
    tee: bool,
    trajectory: str,
    agent: str,
    strict: bool,
    secrets: str,
) -> int:
    """Record the blocks in an agent's output, read from standard input.

    Blocks are as in `trace trajectory capture`. Each is recorded when it ends. Bad ones are reported at the end.

        agent -p "Fix the bug" | trace trajectory feed --tee | less
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with opened(invocation, secrets=secrets) as repo:
        stream = repo.trajectories.capture.feed(trajectory=trajectory, agent=agent)
        while piece := invocation.stdin.read1(PIECE):  # type: ignore[attr-defined]
            if tee:
                invocation.write(piece)
                invocation.flush()
            stream.write(decoder.decode(piece))
        stream.write(decoder.decode(b"", final=True))
        stream.close()
        finish(invocation, repo)
    if not invocation.quiet:
        invocation.note(f"{counted(len(stream.recorded), 'block')} recorded")
    _report_bad_blocks(invocation, stream.bad)
    return EXIT_INVALID if strict and stream.bad else EXIT_OK


@takes(
    Argument("REVISION", "branch", "The branch (default: HEAD's)", OPTIONAL, completes="REVISION"),
    Option("--ask", "ask", "Let the model of `trace config model` find them"),
    Option(
        "--accept",
        "chosen",
        "Record these numbers of the last list, such as 1,3-5 or all",
        "NUMBERS",
    ),
    TRAJECTORY,
    SECRETS,
    JSON,
    QUIET,
)
def propose(
    invocation: Invocation,
    *,
    branch: str | None,
    ask: bool,
    chosen: str | None,
    trajectory: str,
    secrets: str,
) -> Results:
    """List decisions found in messages; --accept records them.

    Decisions are found by their wording, or with --ask by a model. Nothing is recorded until you accept it. The event
    then names the message as its source.

        trace trajectory propose
        trace trajectory propose --accept 1,3-5
    """
    if chosen is not None and (ask or branch is not None):
        raise usage_error("--accept uses the last list: give neither REVISION nor --ask")
    with opened(invocation, secrets=secrets) as repo:
        if chosen is not None:
            count = len(repo.trajectories.capture.proposed())
            numbers = places_in(chosen, count, "--accept") if count else []
            made = repo.trajectories.capture.accept(
                [place + 1 for place in numbers], trajectory=trajectory
            )
            finish(invocation, repo)
            yield made, _lines(invocation, made, "recorded already")
            return
        model = asked_model(invocation, repo) if ask else None
        found = repo.trajectories.capture.propose(branch or "HEAD", model=model)
    yield found, _proposal_lines(invocation, found)


def _proposal_lines(invocation: Invocation, found: Sequence[Proposal]) -> Iterator[str]:
    for each in found:
        text = f"{each.question} → {each.chosen}" if each.question else each.chosen
        name = paint(invocation, short_address(each.address), "yellow")
        yield f"{each.number:>3}  {name}  {one_line(text, 300)}"
        if each.reasoning and each.reasoning not in text:
            yield f"     {one_line(each.reasoning, 300)}"
        for option in each.alternatives:
            if option not in text:
                yield f"     not {one_line(option, 200)}"
    if not found:
        invocation.note("no new decisions were found")


def _lines(invocation: Invocation, recorded: Sequence[Recorded], nothing: str) -> Iterator[str]:
    for made in recorded:
        event, name = made.event, paint(invocation, short_address(made.event.id), "yellow")
        where = f"{made.state.id} ({one_line(made.state.title, 60)})"
        yield f"{name} {safe(event.type)} in {where}: {one_line(event_text(event), 100)}"
    if not recorded:
        invocation.note(nothing)


def _report_bad_blocks(invocation: Invocation, bad: Sequence[BadBlock]) -> None:
    for each in bad:
        where = f" of {short_address(each.address)}" if each.address else ""
        reason = one_line(each.reason, 200)
        invocation.note(f"block {each.number}{where} ({safe(each.type)}) not recorded: {reason}")
