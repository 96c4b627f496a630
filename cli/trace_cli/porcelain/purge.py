"""`trace purge`: permanent deletion of content."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import trace_store
from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import EXIT_INVALID, EXIT_OK, usage_error
from trace_cli.porcelain.common import JSON, opened
from trace_cli.porcelain.progress import Progress
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import counted
from trace_cli.runtime import Invocation
from trace_store.errors import NotFoundError
from trace_store.maintenance.maintenance import Maintenance
from trace_store.maintenance.object_scan import ContentHolder
from trace_store.maintenance.purge import PurgePlan, PurgeReport, RewrittenHistory
from trace_store.maintenance.verify_purged import ENCODINGS, PurgeVerification

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import ResultsAndCode

_SHOWN = 20
"""Lines of a list that are printed for people; `--json` has all."""


@takes(
    Argument("OID...", "oids", "Ids (prefixes) of blobs", ANY, completes="OBJECT"),
    Option(
        "--match-file",
        "match_file",
        "Purge every blob that contains the text in FILE; - reads standard input, or prompts without echo",
        "FILE",
    ),
    Option(
        "--match",
        "match",
        "The same with TEXT; use --match-file for secrets, since shells keep a history",
        "TEXT",
    ),
    Option("--again", "again", "Purge what came back after a purge"),
    Option(
        "--rewrite",
        "rewrite",
        "Rewrite commits without it and leave no tombstone; guesses of short content can still be confirmed",
    ),
    Option("--reason", "reason", "The reason, in one line; it is public", "TEXT", default=""),
    Option("-n --dry-run", "dry_run", "Only print what would be deleted"),
    Option("-y --yes", "yes", "Do not ask for confirmation"),
    Option(
        "--force",
        "force",
        "Also purge content under 16 bytes; messages cannot contain it afterwards",
    ),
    Option(
        "--verify",
        "verify",
        "Search all files of `.trace` afterwards; exit code 7 if found",
    ),
    JSON,
)
def purge(
    invocation: Invocation,
    *,
    oids: list[str],
    match_file: str | None,
    match: str | None,
    again: bool,
    rewrite: bool,
    reason: str,
    dry_run: bool,
    yes: bool,
    force: bool,
    verify: bool,
) -> ResultsAndCode:
    """Delete content permanently: from packs, loose objects, journals, caches and indexes. This cannot be undone.

    With a text, each message that a branch shows first gets a wording without it, in a commit of its own; then all
    contents with the text are purged. What cannot be reworded, and what is purged by id, shows `[purged DATE: reason]`.

    A tombstone remains. It records when, by whom and why, and makes Trace refuse the content, and other content that
    contains the text. Commit ids do not change, and all parents still verify. Commit messages are not changed.

    --verify alone searches all files for earlier purges; `--dry-run --verify` with a text searches for that text.
    Revoke a leaked credential first: anyone who has seen it can still use it.

        trace purge --match-file - --reason "leaked key" --verify
        trace purge 3f2a9c41 --dry-run
    """
    texts = _texts(invocation, match_file, match)
    if not (oids or texts or again or verify):
        raise usage_error("nothing to purge: give ids, --match-file, --again or --verify")
    with opened(invocation) as here:
        upkeep = here.maintenance
        with Progress(invocation) as progress:
            plan = upkeep.plan_purge(
                *oids,
                texts=texts,
                again=again,
                progress=lambda done: progress.tell("looking", done, done),
            )
        issued: RewrittenHistory | None = None
        only_verify = verify and not (oids or again or texts)
        if dry_run or only_verify:
            report = upkeep.purge(plan, dry_run=True, verify=verify)
        else:
            if texts and not (plan.is_found or oids or again):
                _check_elsewhere(upkeep, plan)
            if not invocation.as_json:
                for line in _plan_lines(plan):
                    invocation.line(line)
            if not (force or rewrite):
                plan.check_common()
            if (plan.objects or plan.reappeared) and not yes:
                _ask(invocation, len(plan.objects) or len(plan.reappeared))
            if rewrite:
                report, issued = upkeep.purge_and_rewrite(plan, why=reason, verify=verify)
            else:
                report = upkeep.purge(plan, why=reason, verify=verify, force=force)
        done = not (dry_run or only_verify)
        yield (
            lambda: trace_store.record(
                report, purged=done, reissued=[*issued.objects.items()] if issued else []
            ),
            chain(
                _plan_lines(plan) if dry_run else (),
                _lines(invocation, report, done=done, rewritten=issued is not None),
                () if issued is None else _issued_lines(invocation, issued),
            ),
        )
    found = () if report.absence is None else report.absence.found
    is_elsewhere = bool(report.left or report.damaged or found)
    if done and texts and not (plan.is_found or again or is_elsewhere):
        raise NotFoundError("the text is in no object of this repository; nothing was purged")
    unproven = report.absence is not None and not report.absence.is_proven
    return EXIT_INVALID if unproven or report.left or report.damaged else EXIT_OK


def _check_elsewhere(upkeep: Maintenance, plan: PurgePlan) -> None:
    """Check that a text, which no object has, is in another file, such as a log, before anything is removed."""
    absence = upkeep.purge(plan, dry_run=True, verify=True).absence
    if absence is not None and absence.is_proven:
        raise NotFoundError(
            "the text is in no object of this repository, nor in another file; nothing was purged"
        )


def _texts(invocation: Invocation, path: str | None, text: str | None) -> list[str | bytes]:
    """Return the texts to search for."""
    found: list[str | bytes] = []
    if text is not None:
        invocation.note(
            "note: the shell may keep the text in its history; use --match-file instead"
        )
        found.append(text)
    if path == "-" and invocation.waits_for_keyboard:
        from getpass import getpass

        found.append(getpass("text to purge (not shown): "))
    elif path is not None:
        found.append(invocation.read(path).removesuffix(b"\n").removesuffix(b"\r"))
    return found


def _ask(invocation: Invocation, count: int) -> None:
    if not invocation.waits_for_keyboard:
        raise usage_error("a purge cannot be undone", "--yes confirms it")
    invocation.note(f"purge {counted(count, 'object')} permanently? [y/N] ", end="")
    if invocation.stdin.readline().strip().lower() not in (b"y", b"yes"):
        raise usage_error("nothing was purged", "--yes skips the question")


def _plan_lines(plan: PurgePlan) -> Iterator[str]:
    """Yield what would be deleted, and the commits and refs that hold it."""
    for oid in plan.objects[:_SHOWN]:
        size = plan.sizes.get(oid)
        what = "chunks" if size is None else counted(size, "byte")
        yield f"blob {oid} ({what})"
    yield from _more(len(plan.objects))
    for holder in plan.holders.commits[:_SHOWN]:
        refs = ", ".join(map(_short, holder.refs[:3])) or "unreachable"
        if len(holder.refs) > 3:
            refs += f" (+{len(holder.refs) - 3})"
        yield f"held by {' '.join(_addresses(holder, short=True))}: {refs}"
    yield from _more(len(plan.holders.commits))
    for sent in plan.holders.contexts[:_SHOWN]:
        who = " ".join(filter(None, (sent.provider, sent.model))) or "a provider"
        yield f"sent to {one_line(who)}: the context of {sent.commit.short()}"
    yield from _more(len(plan.holders.contexts))
    if plan.reappeared:
        back = counted(len(plan.reappeared), "object")
        yield f"{back} purged before are here again"


def _issued_lines(invocation: Invocation, issued: RewrittenHistory) -> Iterator[str]:
    """Yield the refs whose history has new ids."""
    count = counted(len(issued.objects), "object")
    yield f"rewritten: {count}, in {counted(len(issued.refs), 'ref')}"
    for ref in issued.refs[:_SHOWN]:
        yield f"  {_short(ref)}"
    yield from _more(len(issued.refs))
    invocation.note(
        "note: .trace/local/reissued maps old ids to new ones; other clones have to clone again"
    )


def _lines(
    invocation: Invocation, report: PurgeReport, *, done: bool, rewritten: bool
) -> Iterator[str]:
    """Yield what was deleted, what is left, and what to do about it."""
    plan = report.plan
    yield from _reworded_lines(report, done=done)
    if done:
        yield (
            f"purged {counted(report.tombstones, 'object')}: {counted(report.packs, 'pack')} rewritten,"
            f" {counted(report.files, 'other file')} removed or changed"
        )
    for path, why in report.left:
        yield f"left: {one_line(path)}: {one_line(why)}"
    for name in report.damaged:
        yield f"left: pack {one_line(name)} is corrupt; see `trace fsck`"
    stays = plan.structure if not rewritten else ()
    if stays:
        names = ", ".join(oid.short() for oid in stays[:3])
        yield (
            f"stays: the text in {counted(len(stays), 'commit or tag')} ({names}), in its message or title;"
            " --rewrite removes it, and gives these and all later commits new ids"
        )
    _warn(invocation, report)
    yield from _absence_lines(invocation, report)
    if done and report.git_folder and (plan.packed or plan.loose):
        _show_git(invocation, report.git_folder, plan, stays=bool(stays))


def _reworded_lines(report: PurgeReport, *, done: bool) -> Iterator[str]:
    """Yield the messages that got a wording without the text."""
    for each in report.reworded:
        branch, count = _short(each.ref), counted(len(each.messages), "message")
        if each.commit is not None:
            yield f"reworded {count} on {branch} without the text: {each.commit.short()}"
        elif done:
            yield f"not reworded, but purged whole: {count} on {branch}; the repository refuses the rest"
        else:
            yield f"would be reworded without the text: {count} on {branch}"


def _warn(invocation: Invocation, report: PurgeReport) -> None:
    note, plan = invocation.note, report.plan
    if plan.guessable:
        note(
            f"note: {counted(len(plan.guessable), 'object')} short and without a salt: a correct guess of the content"
            " can still be confirmed, even after --rewrite; change the secret"
        )
    if plan.elsewhere:
        names = ", ".join(oid.short() for oid in plan.elsewhere[:3])
        note(
            f"note: the same bytes are part of {counted(len(plan.elsewhere), 'other object')}, such as {names};"
            " --match-file purges these too"
        )
    if report.tombstones and plan.texts and not report.kept_out:
        note(
            "note: the text is too long, or there are too many texts: Trace will refuse the same content,"
            " but not other content that contains the text"
        )
    if plan.unreadable:
        note(f"note: {counted(len(plan.unreadable), 'object')} could not be read")


def _proof(absence: PurgeVerification, plan: PurgePlan) -> str:
    """Return what a search proved, for the given texts or for recorded fingerprints."""
    if plan.texts:
        return "not found in any file of .trace"
    objects, texts = absence.purged, absence.purged_texts
    if not objects and not texts:
        return "nothing to search for: nothing was purged here"
    said = f"{counted(objects, 'purged object')}: not an object in any file of .trace"
    if texts:
        return f"{said}; texts of {counted(texts, 'purge')}: not in any file"
    return f"{said}; no text was searched for, since none is on record"


def _absence_lines(invocation: Invocation, report: PurgeReport) -> Iterator[str]:
    absence = report.absence
    if absence is None:
        return
    for found in absence.found:
        yield f"found: {one_line(found.path)}: {one_line(found.what)}, {found.where}"
    for path, why in absence.unread:
        yield f"not read: {one_line(path)}: {one_line(why)}"
    read = (
        f"{counted(absence.files, 'file')}, {counted(absence.frames, 'frame')} decompressed,"
        f" {counted(absence.objects, 'object')} hashed"
    )
    if absence.is_proven:
        yield f"verified: {_proof(absence, report.plan)} ({read})"
        if report.plan.texts:
            invocation.note(f"searched for: {'; '.join(ENCODINGS)}")
    else:
        yield f"not proven: {counted(len(absence.found), 'place')} ({read})"


def _show_git(invocation: Invocation, prefix: str, plan: PurgePlan, *, stays: bool) -> None:
    """Print how to delete copies in git and on other machines."""
    if stays:
        invocation.note(
            "first repeat the purge with --rewrite: the text is still in commits or tags"
        )
    paths = [f"{prefix}/objects/pack/{name}.pack" for name in plan.packed]
    invocation.note("git may have copies in its history. To remove them:")
    invocation.note("  1. revoke the credential, if it is one")
    invocation.note(
        f"  2. git add -A {safe(prefix)} && git commit -m 'Purge'   (tombstones tell other clones)"
    )
    invocation.note(
        "  3. remove the old files from git's history, with https://github.com/newren/git-filter-repo:"
    )
    for path in paths[:_SHOWN]:
        invocation.note(f"       git filter-repo --invert-paths --path {safe(path)}")
    invocation.note(
        f"     older packs may have held it too; to be sure: --path {safe(prefix)}/objects, and step 2 again"
    )
    invocation.note(
        "  4. git push --force; have others clone again, and ask the host to delete cached copies"
    )


def _addresses(holder: ContentHolder, *, short: bool) -> list[str]:
    """Return the addresses of a holder's messages, or its commit if it has none."""
    if not holder.messages:
        return [holder.commit.short() if short else str(holder.commit)]
    return [address.short() if short else address.hex for address in holder.messages]


def _short(ref: str) -> str:
    return safe(ref.removeprefix("refs/").removeprefix("heads/"))


def _more(count: int) -> Iterator[str]:
    if count > _SHOWN:
        yield f"… and {count - _SHOWN:,} more"
