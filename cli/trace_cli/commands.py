"""The table of commands.

Rule: what this table says is said nowhere else. Help, shell completion, the reference pages and the lazy imports
read it. What a command takes stands above its function (see `arguments.py`).

Importing this module must stay cheap: it is on the way of every command.
"""

from __future__ import annotations

PORCELAIN = "porcelain"
ANCILLARY = "ancillary"
PLUMBING = "plumbing"
PANELS = {
    PORCELAIN: "Everyday commands",
    ANCILLARY: "Settings and upkeep",
    PLUMBING: "Plumbing: for scripts, with output that is documented to the byte",
}


class Command:
    """One row.

    Attributes:
        name: what is typed.
        category: PORCELAIN, ANCILLARY or PLUMBING.
        target: "module:attribute" that runs it, imported only then.
        function: the library function it calls, as "module.function".
        help: one line.
    """

    __slots__ = ("category", "function", "help", "name", "target")

    def __init__(self, name: str, category: str, target: str, function: str, help: str) -> None:
        self.name = name
        self.category = category
        self.target = target
        self.function = function
        self.help = help


def _porcelain(name: str, target: str, function: str, help: str) -> Command:
    return Command(
        name, PORCELAIN, f"trace_cli.porcelain.{target}", f"trace_store.{function}", help
    )


def _ancillary(name: str, target: str, function: str, help: str) -> Command:
    return Command(
        name, ANCILLARY, f"trace_cli.porcelain.{target}", f"trace_store.{function}", help
    )


def _plumbing(name: str, function: str, help: str) -> Command:
    target = f"trace_cli.plumbing.{name.replace('-', '_')}:run"
    return Command(name, PLUMBING, target, f"trace_store.{function}", help)


COMMANDS = (
    _porcelain("init", "commit:init", "store.handle.Store.init", "Make a repository in a folder"),
    _porcelain(
        "import",
        "import_:import_",
        "importers.import_all.import_paths",
        "Import transcripts of agent runs",
    ),
    _porcelain(
        "export",
        "export:export",
        "exporters.session.read_session",
        "Write a session to a file, to read or to go on from",
    ),
    _porcelain("status", "status:status", "repo.repository.Repo.status", "Show where things stand"),
    _porcelain("log", "log:log", "repo.repository.Repo.log", "List commits, newest first"),
    _porcelain("diff", "diff:diff", "history.diff.diff", "Show what differs between two contexts"),
    _porcelain(
        "blame",
        "blame:blame",
        "history.blame.blame",
        "Show where each message of a context is from",
    ),
    _porcelain(
        "whohas",
        "blame:whohas",
        "history.whohas.whohas_text",
        "List the branches and contexts that have a message or a text",
    ),
    _porcelain(
        "bisect",
        "bisect:GROUP",
        "history.bisect.next_step",
        "Find the commit, or the message, that changed an outcome",
    ),
    _porcelain(
        "sessions",
        "sessions:GROUP",
        "sessions.listing.list_sessions",
        "List the sessions of agents",
    ),
    _porcelain("search", "search:run", "search.query.search", "Find messages by what they say"),
    _porcelain("view", "view:view", "exporters.session.read_session", "Read a session"),
    _porcelain("show", "show:show", "history.log", "Show a commit, a message or a blob"),
    _porcelain(
        "branch", "branch:branch", "history.branches.list_branches", "List, make or delete branches"
    ),
    _porcelain("switch", "switch:switch", "history.switch.switch", "Go to another branch"),
    _porcelain(
        "checkout",
        "switch:checkout",
        "history.switch.detach",
        "Go to a branch, or look at a commit",
    ),
    _porcelain("tag", "tag:tag", "history.tags.create_tag", "List, make or delete tags"),
    _porcelain("reset", "undo:reset", "history.reset.reset_hard", "Move HEAD's branch to a commit"),
    _porcelain("revert", "revert:revert", "merge.revert.revert", "Take commits back by new ones"),
    _porcelain("undo", "undo:undo", "history.undo.undo", "Take back the last move of a ref"),
    _porcelain("redo", "undo:redo", "history.undo.redo", "Take up again what was taken back"),
    _porcelain(
        "reflog",
        "undo:reflog",
        "history.reflog.newest_first",
        "List where HEAD or a branch has been",
    ),
    _porcelain(
        "commit", "commit:commit", "repo.repository.Repo.commit", "Record messages as one commit"
    ),
    _porcelain(
        "compile",
        "compile:compile_",
        "repo.repository.Repo.compile",
        "Print the context to send to a model",
    ),
    _porcelain("edit", "edit:edit", "repo.repository.Repo.edit", "Give a message a new wording"),
    _porcelain(
        "pin", "edit:pin", "repo.repository.Repo.annotate", "Keep messages whatever is compressed"
    ),
    _porcelain(
        "important", "edit:important", "repo.repository.Repo.annotate", "Mark messages as important"
    ),
    _porcelain(
        "normal",
        "edit:normal",
        "repo.repository.Repo.annotate",
        "Take a priority away from messages",
    ),
    _porcelain(
        "skip", "edit:skip", "repo.repository.Repo.annotate", "Leave messages out of the context"
    ),
    _porcelain("label", "edit:label", "repo.repository.Repo.annotate", "Put labels on messages"),
    _porcelain(
        "remove",
        "edit:remove",
        "repo.repository.Repo.remove",
        "Hide messages; they stay restorable",
    ),
    _porcelain(
        "restore",
        "edit:restore",
        "repo.repository.Repo.restore",
        "Show hidden messages or earlier wordings",
    ),
    _porcelain(
        "merge",
        "merge:merge",
        "merge.merge.merge",
        "Bring another line of history into the branch",
    ),
    _porcelain(
        "resolve", "merge:resolve", "merge.resolve.resolve", "Settle conflicts of what has stopped"
    ),
    _porcelain(
        "cherry-pick",
        "rebase:cherry_pick",
        "merge.cherry_pick.cherry_pick",
        "Bring commits or messages of another branch to this one",
    ),
    _porcelain(
        "rebase",
        "rebase:rebase",
        "merge.rebase.rebase",
        "Make commits anew on top of others, or in another order",
    ),
    _porcelain("move", "move:move", "merge.move.move", "Place messages elsewhere"),
    _porcelain(
        "repair",
        "repair:repair",
        "history.repair.repair",
        "Make a sound branch beside a broken one",
    ),
    _porcelain(
        "tools",
        "tools:GROUP",
        "repo.repository.Repo.set_tools",
        "Set or show the tools a model is offered",
    ),
    _porcelain(
        "usage",
        "usage:GROUP",
        "repo.repository.Repo.record_usage",
        "Record or show what providers reported",
    ),
    _porcelain(
        "bundle",
        "bundle:GROUP",
        "bundles.create.create_bundle",
        "Share branches, tags and sessions as one file",
    ),
    _ancillary("config", "config:config", "config", "Show and change settings"),
    _ancillary(
        "model", "model:GROUP", "llm.http_model.HttpModel", "Show which model is asked, and try it"
    ),
    _ancillary(
        "secrets", "secrets:GROUP", "secrets.engine.Scanner", "Find secrets, and say what is none"
    ),
    _ancillary(
        "trust", "trust:trust", "store.trust.trust", "Let a repository of another user be opened"
    ),
    _ancillary("fsck", "fsck:fsck", "maintenance.fsck.fsck", "Check every object, ref and link"),
    _ancillary(
        "purge",
        "purge:purge",
        "maintenance.purge.purge",
        "Remove content for good, and prove that it is gone",
    ),
    _ancillary(
        "doctor",
        "doctor:doctor",
        "maintenance.doctor.diagnose",
        "Scan at what the repository stands on, and say what to do",
    ),
    _ancillary(
        "seal",
        "seal:seal",
        "repo.repository.Repo.seal",
        "Make everything ready for `git add .trace`",
    ),
    _ancillary(
        "adopt",
        "adopt:adopt",
        "maintenance.adopt.adopt",
        "Go on after git has moved refs under a running process",
    ),
    _ancillary(
        "pack",
        "seal:pack",
        "maintenance.repack.pack",
        "Fold packs and loose objects together",
    ),
    _ancillary(
        "gc",
        "gc:gc",
        "maintenance.gc.gc",
        "Seal, pack, and clear away what is old",
    ),
    _ancillary(
        "prune",
        "gc:prune",
        "maintenance.gc.prune",
        "Remove what nothing leads to, also from packs",
    ),
    _ancillary("du", "du:du", "maintenance.du.measure", "Show what takes how much space"),
    _ancillary(
        "demo",
        "demo:demo",
        "importers.import_all.import_paths",
        "See the main job done on a sample",
    ),
    _ancillary(
        "completion",
        "completion:completion",
        "refs.database.RefDatabase.iterate",
        "Print what a shell runs to complete branches and addresses",
    ),
    _ancillary("help", "help:show_help", "__version__", "Show help for a command"),
    _ancillary("version", "version:show_version", "__version__", "Print the version"),
    _plumbing(
        "hash-object",
        "objects.content.write_content",
        "Print the id of content, and store it with -w",
    ),
    _plumbing(
        "cat-file", "odb.database.ObjectDatabase.read", "Print an object, its kind or its size"
    ),
    _plumbing(
        "write-commit",
        "store.handle.Store.transact",
        "Write the commit that JSON on standard input describes",
    ),
    _plumbing("rev-parse", "revision.resolve", "Print the object ids that revisions mean"),
    _plumbing("rev-list", "graph.topological", "List the commits reachable from revisions"),
    _plumbing(
        "merge-base", "graph.merge_bases", "Print the best common ancestors of two revisions"
    ),
    _plumbing(
        "update-ref",
        "store.handle.Store.transact",
        "Move, make or delete refs, only if they stand where expected",
    ),
    _plumbing(
        "symbolic-ref",
        "refs.database.RefDatabase.set_head",
        "Print or set the ref that HEAD points to",
    ),
    _plumbing("for-each-ref", "refs.database.RefDatabase.iterate", "List refs, sorted by name"),
    _plumbing(
        "ls-context", "context.strategies.compile", "List the messages of a revision's context"
    ),
    _plumbing(
        "cat-context",
        "context.object_stream.object_stream",
        "Print the objects of a revision's context, as one stream of bytes",
    ),
    _plumbing(
        "ls-parts",
        "objects.message.part_blobs",
        "List what messages are made of, over a whole history",
    ),
    _plumbing(
        "compile-index",
        "context.compile_index",
        "Print, check or rebuild the compile index of a branch",
    ),
    _plumbing("ls-objects", "odb.reachable.reachable", "List objects with their kinds and sizes"),
    _plumbing(
        "pack-objects",
        "odb.pack_writer.PackEncoder",
        "Write the objects that standard input names into packs",
    ),
    _plumbing(
        "unpack-objects",
        "odb.verify.PackVerifier",
        "Store the objects of packs on standard input one by one",
    ),
    _plumbing(
        "index-pack",
        "odb.ingest.PackReceiver",
        "Make a pack's index, or store packs from standard input",
    ),
    _plumbing(
        "verify-pack",
        "odb.verify.PackVerifier",
        "Read packs to their end and hash everything again",
    ),
    _plumbing("show-index", "odb.index_scan.IndexContent", "Print what the index of a pack holds"),
    _plumbing(
        "follow", "store.handle.Store.follow", "Print ref moves and emitted events as they come"
    ),
    _plumbing(
        "emit", "store.handle.Store.emit", "Tell those who follow something that need not last"
    ),
    _plumbing("count-objects", "store.handle.Store", "Count objects and the space they take"),
)

BY_NAME = {command.name: command for command in COMMANDS}
