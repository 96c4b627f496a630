"""What the keys of each JSON shape mean, by the command that prints it."""

from __future__ import annotations

VERSION = 1
"""Raised when a key changes its meaning or goes; new keys do not raise it."""

SHAPES: dict[str, dict[str, str]] = {
    "init": {
        "directory": "the absolute path of the `.trace` directory",
    },
    "commit": {
        "commit": "the id of the new commit",
        "ref": "the branch that now ends in it; null when HEAD is detached",
        "message_count": "how many messages it adds",
        "addresses": "their addresses",
        "also": "the other messages of the same call, to which it was done as well",
        "secrets": "how many secrets of each kind were found in what was given, by their rules",
        "waiting": "the `kind` and `ref` of a merge, pick, revert or rebase that stopped at conflicts, or null",
    },
    "status": {
        "branch": "the short name of HEAD's branch; null when it is detached",
        "ref": "its full name, or null",
        "detached": "whether HEAD stands for a commit instead of a branch",
        "commit": "HEAD's commit; null on a branch without one",
        "message_count": "messages of the compiled context",
        "token_count": (
            "their tokens: as a provider reported them last, with the estimate of what changed since, or as "
            "they are counted here"
        ),
        "token_source": (
            "how far to trust that; `provider:NAME` of a report, with `+estimate` where something changed "
            "since"
        ),
        "reported_token_count": "what the provider reported; null without a report",
        "estimated_token_count": "tokens as they are counted here, with tool schemas",
        "text_token_count": "the part of them that is text",
        "text_token_source": "how far to trust that",
        "budget": "tokens allowed (`trace config budget`), or null",
        "share": "tokens over budget, or null",
        "diverged": "refs with several tips, each with its tips",
        "incomplete": "refs whose commit is not here",
        "unsealed_transactions": "changes that git does not see yet",
        "unsealed_bytes": "the size of their objects",
        "branch_count": "how many branches there are",
        "returned": "purged objects whose bytes are here again",
        "upstream": "full name of the ref that HEAD's branch is compared with, or null",
        "ahead": "commits that the branch has and the upstream has not, or null",
        "behind": "the other way about",
        "staged": "the last commit of what `trace reset` took back and staged, or null",
        "bisecting": "whether a search goes on",
        "fork_of": "the branch that HEAD's branch was forked from, or null",
        "fork_point": "the commit where it was forked, or null",
        "waiting": "the `kind` and `ref` of a merge, pick, revert or rebase that stopped at conflicts, or null",
    },
    "branch": {
        "name": "its short name",
        "ref": "its full name",
        "commit": "where it stands",
        "tips": "all its tips, that one first; several when it is diverged",
        "current": "whether HEAD is on it",
        "upstream": "full name of its upstream, or null",
        "ahead": "commits that the upstream has not; null without an upstream, or when that is gone",
        "behind": "commits that only the upstream has, or null",
        "time": "when the commit was made; null when it is not here",
        "summary": "the line that stands for it, or null",
    },
    "switch, checkout": {
        "ref": "the branch that HEAD is on; null when it is detached",
        "commit": "HEAD's commit; null on a branch without one",
        "detached": "whether HEAD stands for a commit instead of a branch",
        "created": "whether the branch was made",
        "reset": "whether it was there, and was given another commit or the same again (`-C`)",
        "replaced": "the ref in the trash that keeps what it stood for then, or null",
        "before": "`ref` and `commit` as they were",
        "kept": "the ref in the trash that keeps a commit which nothing else leads to, or null",
    },
    "tag": {
        "name": "its short name",
        "ref": "its full name",
        "object": "what the ref stands for: the tag object of an annotated tag",
        "target": "what it names in the end",
        "annotated": "whether it has an author, a time and a message",
        "author": "who made it, or null",
        "time": "when, or null",
        "message": "what it says, or null",
    },
    "reset": {
        "ref": "the branch; null when HEAD is detached",
        "before": "where it stood; null when it had no commit",
        "commit": "where it stands",
        "kept": "the ref that keeps what was after, or null when nothing was",
        "count": "how many commits that is; null when it is far, or not on the same line",
    },
    "revert": {
        "commit": "its id",
        "reverts": "the commit that it takes back",
        "ref": "the branch that has it; null when HEAD is detached",
        "operations": "the names of its operations",
        "conflicts": "what was settled: for each `kind` and `address`, which is null of tools",
    },
    "undo, redo": {
        "message": "what the reflogs say of the command",
        "author": "who had run it",
        "time": "when",
        "moves": "for each ref `ref`, and its values `before` and `now`; HEAD is one when it went elsewhere",
        "ref": "the branch that HEAD is on; null when it is detached",
        "commit": "HEAD's commit, or null",
    },
    "reflog": {
        "ref": "full name of the ref, or `HEAD`",
        "number": "the n of `NAME@{n}`",
        "before": "where it stood, or null",
        "commit": "where it went, or null",
        "time": "when",
        "author": "who",
        "message": "what was done",
    },
    "log": {
        "commit": "its id",
        "parents": "the ids of its parents",
        "author": "who",
        "time": "when; null when what it was made from had no time",
        "message": 'what was said about it, or ""',
        "summary": "the line that stands for it",
        "operations": "the names of its operations",
        "message_count": "how many messages it adds",
        "addresses": "their addresses",
        "facts": "the facts that it records, by name",
        "settings": "the settings that its messages were generated with, by name",
        "refs": "full names of the refs that end in it; HEAD, and then its branch, first",
        "tokens_added": "tokens of the context, compared with the first parent's",
        "token_count": "tokens of the context, as in `status`",
        "token_source": "how far to trust both",
    },
    "diff": {
        "before": "the commit that was compared",
        "after": "with which",
        "message_count_before": "messages of its context",
        "message_count_after": "of the other",
        "token_count_before": "their tokens",
        "token_count_after": "of the other",
        "token_source": "how far to trust these",
        "common_count": "how many messages at the beginning are the same to a model",
        "tokens_kept": "tokens that a provider's cache of the one context keeps for the other",
        "tokens_lost": "tokens that it holds in vain",
        "tokens_new": "tokens that it does not hold",
        "tools_before": "names of the tools that only the one offers, or offers otherwise",
        "tools_after": "of the other",
        "changes": (
            "a record for each message that differs: `address`, `role`, `kind`, `changes`, `before`, `after`, "
            "`operations`; of edited ones `words`"
        ),
    },
    "diff --compiled": {
        "format": "the format that both were rendered in",
        "before": "the commit that was compared",
        "after": "with which",
        "size_before": "the size of its request",
        "size_after": "of the other",
        "same_bytes": "how many bytes at the beginning are the same",
        "lines": (
            "pairs of a sign and a text; the sign is `-`, `+`, a space for what is the same, or `@` before a "
            "run of lines"
        ),
    },
    "blame": {
        "address": "its address",
        "position": "its place, from 0",
        "role": "its role",
        "kind": "its kind",
        "branch": 'full name of the branch that it was made on, as far as that can be told; else ""',
        "model": 'the model that wrote it, or ""',
        "tools": "the tools that it calls, or whose results it holds",
        "made": "what added it: `operation`, `commit`, `author`, `time`",
        "since": "what was done to it since, the latest first, in the same form",
    },
    "whohas": {
        "address": "the address of the message",
        "wording": "the oldest commit where this wording stands, and its number there",
        "role": "the role",
        "refs": "who has it: `ref`, `state`, `position`",
    },
    "bisect": {
        "kind": "`commits` or `messages`",
        "commit": "the bad commit, or the one whose messages are looked at",
        "next": "what to try: the id of a commit, or how many messages; null when nothing is left",
        "left": "how many points are in question",
        "found": "the first bad point; several, of which it is one, where what was skipped leaves it open",
        "told": "what was told so far, as `bisect log` prints it",
    },
    "bisect log": {
        "word": "`good`, `bad` or `skip`",
        "point": "the id of a commit, or how many messages",
        "failed": "how many runs of a command failed",
        "runs": "of how many; 0 where somebody just said it",
    },
    "show": {
        "meta": "facts about where it comes from",
        "links": "pairs of a relation and a target",
        "messages": "the messages it adds, in the form of `trace compile --format json`",
        "address": "its address",
        "priority": "`pinned`, `important`, `normal` or `skip`",
        "labels": "its labels",
        "hidden": "`removed`, `replaced`, or null",
        "ghost": "whether a removed message leaves a placeholder",
        "version": "the wording that counts, from 0",
        "version_count": "how many wordings there are",
        "wordings": "with `--versions`: the parts of each",
        "object": "its id",
        "kind": "its kind",
        "size": "the size of content",
        "text": "content as text, bytes that are not UTF-8 as `\\xff`",
    },
    "compile": {
        "commit": "the commit that was compiled, or null",
        "message_count": "messages of the context",
        "token_count": "tokens of the context, as in `status`",
        "token_source": "how far to trust that",
        "reported_token_count": "what a provider reported last; null without a report",
        "estimated_token_count": "tokens of all messages, their framing and the tool schemas, as they are counted here",
        "text_token_count": "the part of them that is text",
        "text_token_source": "how far to trust that",
        "prefix_hash": "a hash over all messages; null for another strategy than `full`",
        "tool_count": "how many tools the model is offered",
        "format": "the format that was rendered",
        "format_version": "its version; another one may give other bytes",
        "repairs": "what stands in the request otherwise than in the context: `code`, `where`, `detail`",
        "messages": (
            "with `--table`: `address`, `role`, `kind`, `priority`, `labels`, `ghost`, `token_count`, and "
            "`text_token_count`, the part of it that is text"
        ),
    },
    "merge": {
        "outcome": (
            "`up-to-date`, `fast-forward`, `merged`, `squashed`, or `stopped` at conflicts, with nothing "
            "written"
        ),
        "ref": "full name of the branch",
        "before": "where it stood, or null",
        "commit": "where it stands, or null",
        "merged": "the commits that were brought in",
        "included": "how many messages came in",
        "hidden": "how many of these came in hidden: as theirs had them, or as was settled",
        "changed": "how many messages of ours were changed: reworded, marked, moved, hidden or shown again",
        "conflicts": "those that are open, each as `trace resolve` prints it",
        "settled": "those that were settled, each as `trace resolve` prints it",
    },
    "resolve": {
        "number": "what names it, from 1, until all is done",
        "kind": "see [Merging](merging.md#conflicts)",
        "meaning": "the same in words",
        "addresses": "the messages that it is about; none for tools",
        "choices": "what settles it: `ours`, `theirs`, `both`, `text`",
        "ours": (
            "messages of ours that are at stake: objects with `address`, `role`, `text`, `hidden` (`removed`, "
            "`replaced` or empty) and `priority`"
        ),
        "theirs": "the same of theirs",
    },
    "cherry-pick, rebase": {
        "outcome": "`up-to-date`, `done`, or `stopped`, with nothing written",
        "ref": "full name of the branch",
        "before": "where it stood, or null",
        "commit": "where it stands, or null",
        "made": "in order: objects with `from`, the commit, and `commit`, what it became",
        "dropped": "commits that were left out",
        "there": "commits that were left out because the branch has all of them already",
        "stopped_at": "the commit that it stopped at, or null",
        "conflicts": "those that are open, each as `trace resolve` prints it",
        "settled": "those that were settled, each as `trace resolve` prints it",
        "warnings": "what may not mean what it meant before: objects with `kind`, `meaning`, `address` and `others`",
    },
    "move": {
        "commit": "the new commit; null when nothing was written",
        "moved": "addresses of the messages that were moved, in their order",
        "waiting": "as of `commit`",
        "after": "the message that they come after; null when they are first",
        "warnings": "as for `rebase`",
    },
    "repair": {
        "outcome": "`sound`, `repaired`, `repaired-before`, or `broken` with `--dry-run`",
        "ref": "the full name of the branch; null for a commit named otherwise",
        "commit": "the commit whose context was looked at",
        "message_count": "messages of that context",
        "faults": (
            "what is wrong: `code`, `address`, `position` (from 0), `detail`, `done`, and the `providers` "
            "that would refuse it"
        ),
        "adaptations": "for each provider, how often its renderer adapts what in the repaired context",
        "repaired": "the full name of the branch that is repaired, or would be; null when there is nothing to repair",
        "repair_commit": "the commit that was written, or null",
        "skips": "with `--file`: what of the file could not be read, as `trace import` has it",
    },
    "tools show": {
        "tools": "the schemas, as they were set",
    },
    "usage show": {
        "commit": "the commit that records it",
        "about": "the commit whose context was sent, or null",
        "input_total": "tokens the model read, cached or not",
        "cache_read": "of these, from a cache",
        "cache_write": "of these, written to a cache",
        "output_total": "tokens the model wrote, reasoning included",
        "reasoning": "of these, reasoning",
        "source": "the shape the report came in",
    },
    "model": {
        "name": "what the model is called",
        "api": "how it is asked: `chat`, `responses` or `anthropic`",
        "url": "where",
        "key_from": "where its key comes from; null when it has none",
        "timeout": "how many seconds nothing may come",
        "deadline": "how many seconds an answer may take",
        "attempts": "how often it is asked at most",
    },
    "model test": {
        "text": "the answer",
        "model": "the model, as its server calls it; null when it does not say",
        "stop": "`done`, or `length` when the answer was cut",
        "milliseconds": "how long it took",
        "usage": "what it used, in the normal form of `usage show`; null when it does not say",
    },
    "trust": {
        "path": "the real path of a repository's directory, or of a folder",
        "owner": "the id of the user who owned it when it was trusted; -1 where there are none",
        "below": "whether every repository below the folder is meant",
    },
    "secrets rules": {
        "rule": "the kind of secret, as it stands in placeholders",
        "words": "a text without one of these holds no such secret",
    },
    "secrets test": {
        "rule": "the kind of secret",
        "id": "the id of the finding, as placeholders have it",
        "place": "the line and the column",
    },
    "secrets scan": {
        "rule": "its kind",
        "id": "by which it may be allowed",
        "object": "the object that holds it",
        "kind": "of the object",
        "addresses": "of the messages that say it",
        "commits": "that name the object",
        "refs": "that lead to one of them",
    },
    "secrets allow": {
        "id": "the id of a finding",
        "allowed": "whether it is taken for no secret from now on",
    },
    "import": {
        "commits": "new commits",
        "messages": "new messages",
        "unread": "blocks that could not be read; `unread_at` of a file lists `[line, place]` of them",
        "hidden": "messages of which nothing can be shown to a model",
        "outcomes": "how many records became what: `message`, `event`, `source`, or the reason of a skip",
        "secrets": "how many secrets of each kind were found in what was read, by their rules",
        "files": (
            "for each file: `path`, `format`, `skipped`, `session`, `branches`, `trashed`, `size`, "
            "`bytes_read`, `commits`, `commits_present`, `commits_shared`, `messages`, `calls`, `results`, "
            "`unread`, `unread_at`, `hidden`, `records`, `skips`, `secrets`, and `error`, why the file was "
            "refused or given up, or null"
        ),
    },
    "export": {
        "session": (
            "the id of the session, as its branch is named; of another branch its name, of a commit the "
            "beginning of its id"
        ),
        "thread": '"" for the session itself; else `agents/<id>`, `rewinds/<id>` or `copies/<id>`',
        "source_format": "what it was imported from, or null",
        "ref": "the full name of its branch, or null",
        "commit": "the commit whose context was written",
        "format": "the format that was written",
        "file": "where to, or null: without `-o` nothing is written",
        "size": "the size of the file",
        "message_count": "messages in it",
        "hidden_count": "messages that the context hides; they are in the file only with `--hidden`",
        "losses": (
            "what is not in the file: `what`, a word of [exporting.md](exporting.md), `count`, and `detail`, "
            'which may be ""'
        ),
        "resume": (
            "where to put the file and how to resume the session in the agent, as text; null if the agent "
            "cannot resume from a file"
        ),
    },
    "export --native": {
        "session": "the id of the session",
        "format": "what it was imported from",
        "agent": "of whose own file it is, when it is a subagent's; else null",
        "ref": "the full name of the ref that keeps the file",
        "file": "where to, or null: without `-o` nothing is written",
        "size": "the size of the file",
        "blake3": "its hash",
        "placeholders": "how many stand in it where secrets were; 0 when it is what the program wrote, byte for byte",
    },
    "bundle create": {
        "path": "the file, as it was given",
        "refs": "the tips of each ref that the bundle carries, by its full name; this working copy's own first",
        "prerequisites": "ids of what it builds upon, which whoever takes it must have",
        "objects": "how many objects it holds",
        "packs": "how many packs they are in",
        "size_bytes": "its size",
        "head": "the full name of the ref that HEAD was on, or null",
        "secrets": "how many different secrets the filter finds in it; null from `verify`, which does not look",
    },
    "bundle list": {
        "refs": "as above",
        "prerequisites": "as above",
        "objects": "as above",
        "head": "as above",
    },
    "bundle import": {
        "path": "the file, as it was given",
        "refs": (
            "for each ref: `name` here, `source` (its name in the bundle), `outcome`, `before` (its value "
            "here until now, or null), `tips` (its values in the bundle)"
        ),
        "objects": "how many objects the bundle holds",
        "packs": "the names of the packs that are new here",
        "head": "the branch that HEAD was attached to, or null",
    },
    "fsck": {
        "severity": "`error`, `warning` or `info`",
        "code": "a stable name of the kind of finding",
        "what": "the object, ref or file it is about",
        "detail": "one sentence",
        "mended": (
            "what was done, each with `kind`, `what` and `detail`; the kind is `pack`, `object`, `journal`, "
            "`ref`, `head`, `derived` or `file`"
        ),
        "lost": (
            "objects found nowhere, each with `object`, those it is `named_by`, the `refs` that lead to it, "
            "and `why`"
        ),
        "kept": "the files set aside in `lost-found/`, relative to `.trace`",
        "remaining": "what is found afterwards, each as above",
        "report": "the file that says the same, relative to `.trace`, or null",
        "dry_run": "whether nothing was written",
    },
    "doctor": {
        "findings": (
            "what is worth doing something about, each with a stable `code`, `what` it is about, `detail`, "
            "and `advice`"
        ),
        "facts": (
            "versions and surroundings: `trace`, `python`, `platform`, `file_system`, `msgpack`, `blake3`, "
            "`zstd`"
        ),
    },
    "seal": {
        "transactions": "changes that were sealed",
        "objects": "objects that were written to packs",
        "packs": "the names of the new packs",
        "folded": "how many packs were folded into them",
        "refs": "refs whose files were brought up to date",
        "accepted": "refs that git had moved",
    },
    "adopt": {
        "changed": "for each ref that something else had moved: `ref`, `before` and `now`, ids or null",
        "kept": "for each value that a ref would have lost: `ref`, which keeps it now, and `commit`",
        "gone": "for each value that is not here any more: `ref`, which had it, and `commit`",
    },
    "purge": {
        "purged": "whether something was to be removed; false with `--dry-run`, and with `--verify` alone",
        "objects": (
            "what goes, each with `object`, its `size` in bytes (null for a list of chunks), and whether it "
            "is `guessable`"
        ),
        "commits": (
            "those that held it, each with `commit`, the `addresses` of its messages, and `refs` that lead to "
            "it"
        ),
        "refs": "all refs that lead to one of them, or to a kept file with it",
        "contexts": "those that were sent to a provider, each with `commit`, `report`, `provider`, `model`, `sent`",
        "elsewhere": "objects that hold the same bytes within other content, and stay",
        "structure": "commits, tags and lists that hold the text themselves, and stay",
        "packs": "the packs that had copies",
        "loose": "how many had loose files",
        "reissued": "with `--rewrite`, each commit, tag and list that got a new id: the old one and the new",
        "tombstones": "how many were made",
        "kept_out": "whether other content that holds what was purged is refused from now on",
        "rewritten": "how many packs were written anew",
        "files": "how many other files were removed or changed",
        "left": "files that may hold the bytes still, each with the reason",
        "damaged": "packs that cannot be read to their end, and stay",
        "absent": "whether `--verify` proved that it is nowhere; null without it",
        "found": "what it found: path, what, how it stands there",
        "unread": "files that it could not read, each with the reason",
    },
    "pack": {
        "objects": "objects in the new packs",
        "packs": "the names of the new packs",
        "replaced": "packs that went",
        "loose": "loose objects that went",
        "bytes_before": "the size of what was replaced",
        "bytes_after": "the size of what replaced it",
        "kept": "packs that cannot be read to their end",
    },
    "gc, prune": {
        "dry_run": "whether nothing was changed, so that the rest says what would be done",
        "reachable": "objects that something leads to",
        "taken": "objects that went into quarantine",
        "bytes_taken": "the size of the files that went there, as whole packs do; 0 in a dry run of `prune`",
        "young": "objects that nothing leads to, but not for long enough",
        "sealed": "objects that nothing leads to for long enough, and that stay because they are in packs",
        "packs": "packs that were written",
        "replaced": "packs that went",
        "tracked": "packs to write anew that are in the index of your git",
        "damaged": "packs that cannot be read to their end",
        "entries": "entries of reflogs that expired",
        "emptied": "files in quarantine that went for good",
        "bytes_emptied": "their size",
        "swept": "temporary files that went",
        "expired": "refs that expired from the trash, each with `ref` and `rule`: `age`, `count` or `size`",
        "expired_bytes": "bytes on the disk that only these held",
        "kept": "refs that a rule would have taken, each with `ref` and `reason`: one of `trash_keep`",
    },
    "checkpoint": {
        "name": "its short name",
        "ref": "its full name",
        "form": "`hard` or `soft`",
        "commit": "the commit to return to; of a soft one the commit with the summary",
        "branch": "full name of the branch that it was made of, or null",
        "reason": "why it was made",
        "trigger": "`manual`, `fork`, `archive`, or the trigger of an automatic one",
        "automatic": "whether Trace made it by itself",
        "archived": "whether it is the loser of `trace fork merge`",
        "author": "who made it, or null",
        "time": "when, or null",
    },
    "checkpoint restore": {
        "checkpoint": "full name of the checkpoint",
        "ref": "the branch; null when HEAD is detached",
        "before": "the old tip; null for a new branch",
        "commit": "the new tip",
        "kept": "the ref that keeps the old tip, or null",
    },
    "checkpoint inject": {
        "checkpoint": "full name of the checkpoint",
        "address": "the message",
        "commit": "the commit that added it; null when the context had it already",
        "ref": "the branch; null when HEAD is detached",
        "hidden": "whether the context had it, but hidden",
    },
    "fork": {
        "ref": "the new branch",
        "parent": "the branch that was forked, or null",
        "fork_point": "the commit where it begins",
        "checkpoint": "the ref that records it",
    },
    "fork compare": {
        "fork_point": "the newest common commit; null if only messages are common",
        "left": (
            "one side: `name`, `commit`, `context_token_count`, `messages` (`address`, `role`, `text`) since "
            "the fork, and the keys of a soft checkpoint's `data` about these"
        ),
        "right": "the other side",
    },
    "fork merge": {
        "winner": "the branch that is kept",
        "loser": "the other branch",
        "commit": "the commit on the winner that records the conclusion",
        "archived": "the checkpoint that keeps the loser's tip",
        "archived_commit": "that tip",
        "moved": "whether the loser's name moved to the winner; else it was deleted",
        "conclusion": "what the loser came to",
    },
    "trash, trash search": {
        "entry": "`branch`, `tag`, `checkpoint` or `other`",
        "address": "its address",
        "branch": "the branch that hides it, as it was asked for",
        "role": "its role",
        "kind": "its kind",
        "tools": "the tools that it calls, or whose results it holds",
        "ghost": "whether a placeholder is shown for it",
        "time": "when it came into the trash; null if git brought it",
        "token_count": "its tokens",
        "text": "what its commit says",
        "ref": "the ref in the trash",
        "original": "the ref that had this value, or null",
        "object": "the value",
        "exists": "whether the original exists, at another value",
    },
    "trash restore": {
        "commit": "the commit that shows messages again, or null",
        "messages": (
            "each restored message: `address`, `after`, the message that it follows or null, and `exact`, "
            "whether no hidden one is between"
        ),
        "refs": "each ref: `entry`, its name in the trash, `ref`, its name now or null if it stays, and `object`",
    },
    "trash empty": {
        "dry_run": "whether nothing was changed",
        "messages": "messages that left the list",
        "refs": "refs that were deleted from the trash",
        "shared": "those of them that free nothing",
        "objects": "objects that nothing reaches any more",
        "bytes": "their bytes on the disk",
        "commit": "the commit that took the messages off the list, or null",
    },
    "compress": {
        "commit": "the commit; null if the context was small enough already",
        "ref": "the branch; null when HEAD is detached",
        "target": "tokens that the context should have at most, or null",
        "before": "tokens of the context before",
        "after": "tokens afterwards; with `--plan` at most so many",
        "smallest": "the smallest target that can be reached",
        "runs": (
            "for each summary: `messages`, the addresses that it replaces; `sources`, those it is made from; "
            "`token_count`, and `budget`, its most tokens"
        ),
        "kept": "how many messages of the range stay, by the reason",
        "summariser": "`model`, `extractive` or `manual`; null without a commit",
        "model": "the name of the model, or null",
        "summaries": "the `address` and `text` of each summary",
        "secrets": "as of `commit`",
    },
    "expand": {
        "commit": "the commit",
        "ref": "the branch; null when HEAD is detached",
        "what": "what the message was: `compressed`, `removed` or `edited`",
        "messages": "the addresses that are shown in full now",
    },
}
