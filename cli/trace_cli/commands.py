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
    _porcelain("init", "writing:init", "store.Store.init", "Make a repository in a folder"),
    _porcelain(
        "import", "importing:import_", "importers.import_paths", "Import transcripts of agent runs"
    ),
    _porcelain(
        "export",
        "exporting:export",
        "exporters.read_session",
        "Write a session to a file, to read or to go on from",
    ),
    _porcelain("status", "standing:status", "repo.Repo.status", "Show where things stand"),
    _porcelain("log", "history:log", "repo.Repo.log", "List commits, newest first"),
    _porcelain(
        "diff", "comparing:diff", "comparing.diff", "Show what differs between two contexts"
    ),
    _porcelain(
        "blame", "tracing:blame", "comparing.blame", "Show where each message of a context is from"
    ),
    _porcelain(
        "whohas",
        "tracing:whohas",
        "comparing.whohas_text",
        "List the branches and contexts that have a message or a text",
    ),
    _porcelain(
        "bisect",
        "bisecting:GROUP",
        "comparing.bisecting.next_step",
        "Find the commit, or the message, that changed an outcome",
    ),
    _porcelain(
        "sessions", "sessions:GROUP", "sessions.list_sessions", "List the sessions of agents"
    ),
    _porcelain("search", "searching:run", "search.search", "Find messages by what they say"),
    _porcelain("view", "viewing:view", "exporters.read_session", "Read a session"),
    _porcelain("show", "showing:show", "history.walk", "Show a commit, a message or a blob"),
    _porcelain(
        "branch", "branching:branch", "branching.list_branches", "List, make or delete branches"
    ),
    _porcelain("switch", "switching:switch", "branching.switch", "Go to another branch"),
    _porcelain(
        "checkout", "switching:checkout", "branching.detach", "Go to a branch, or look at a commit"
    ),
    _porcelain("tag", "tagging:tag", "branching.create_tag", "List, make or delete tags"),
    _porcelain("reset", "stepping:reset", "branching.reset_hard", "Move HEAD's branch to a commit"),
    _porcelain("revert", "reverting:revert", "joining.revert", "Take commits back by new ones"),
    _porcelain("undo", "stepping:undo", "branching.undo", "Take back the last move of a ref"),
    _porcelain("redo", "stepping:redo", "branching.redo", "Take up again what was taken back"),
    _porcelain(
        "reflog",
        "stepping:reflog",
        "branching.newest_first",
        "List where HEAD or a branch has been",
    ),
    _porcelain("commit", "writing:commit", "repo.Repo.commit", "Record messages as one commit"),
    _porcelain(
        "compile", "compiling:compile_", "repo.Repo.compile", "Print the context to send to a model"
    ),
    _porcelain("edit", "changing:edit", "repo.Repo.edit", "Give a message a new wording"),
    _porcelain("pin", "changing:pin", "repo.Repo.annotate", "Keep messages whatever is compressed"),
    _porcelain(
        "important", "changing:important", "repo.Repo.annotate", "Mark messages as important"
    ),
    _porcelain(
        "normal", "changing:normal", "repo.Repo.annotate", "Take a priority away from messages"
    ),
    _porcelain("skip", "changing:skip", "repo.Repo.annotate", "Leave messages out of the context"),
    _porcelain("label", "changing:label", "repo.Repo.annotate", "Put labels on messages"),
    _porcelain(
        "remove", "changing:remove", "repo.Repo.remove", "Hide messages; they stay restorable"
    ),
    _porcelain(
        "restore",
        "changing:restore",
        "repo.Repo.restore",
        "Show hidden messages or earlier wordings",
    ),
    _porcelain(
        "merge",
        "joining:merge",
        "joining.merge",
        "Bring another line of history into the branch",
    ),
    _porcelain(
        "resolve", "joining:resolve", "joining.resolve", "Settle conflicts of what has stopped"
    ),
    _porcelain(
        "cherry-pick",
        "rewriting:cherry_pick",
        "joining.cherry_pick",
        "Bring commits or messages of another branch to this one",
    ),
    _porcelain(
        "rebase",
        "rewriting:rebase",
        "joining.rebase",
        "Make commits anew on top of others, or in another order",
    ),
    _porcelain("move", "moving:move", "joining.moving.move", "Place messages elsewhere"),
    _porcelain(
        "repair",
        "repairing:repair",
        "history.repairing.repair",
        "Make a sound branch beside a broken one",
    ),
    _porcelain(
        "tools", "tools:GROUP", "repo.Repo.set_tools", "Set or show the tools a model is offered"
    ),
    _porcelain(
        "usage", "usage:GROUP", "repo.Repo.record_usage", "Record or show what providers reported"
    ),
    _porcelain(
        "bundle",
        "bundling:GROUP",
        "exchange.create_bundle",
        "Share branches, tags and sessions as one file",
    ),
    _ancillary("config", "settings:config", "config", "Show and change settings"),
    _ancillary("model", "models:GROUP", "llm.HttpModel", "Show which model is asked, and try it"),
    _ancillary(
        "secrets", "guarding:GROUP", "secrets.Scanner", "Find secrets, and say what is none"
    ),
    _ancillary(
        "trust", "trusting:trust", "store.trust", "Let a repository of another user be opened"
    ),
    _ancillary(
        "fsck", "checking:fsck", "maintenance.checking.fsck", "Check every object, ref and link"
    ),
    _ancillary(
        "purge",
        "purging:purge",
        "maintenance.purging.purge",
        "Remove content for good, and prove that it is gone",
    ),
    _ancillary(
        "doctor",
        "doctoring:doctor",
        "maintenance.doctoring.examine",
        "Look at what the repository stands on, and say what to do",
    ),
    _ancillary(
        "seal", "maintaining:seal", "repo.Repo.seal", "Make everything ready for `git add .trace`"
    ),
    _ancillary(
        "adopt",
        "adopting:adopt",
        "maintenance.adopting.adopt",
        "Go on after git has moved refs under a running process",
    ),
    _ancillary(
        "pack",
        "maintaining:pack",
        "maintenance.packing.pack",
        "Fold packs and loose objects together",
    ),
    _ancillary(
        "gc",
        "collecting:gc",
        "maintenance.collecting.gc",
        "Seal, pack, and clear away what is old",
    ),
    _ancillary(
        "prune",
        "collecting:prune",
        "maintenance.collecting.prune",
        "Remove what nothing leads to, also from packs",
    ),
    _ancillary(
        "du", "measuring:du", "maintenance.measuring.measure", "Show what takes how much space"
    ),
    _ancillary(
        "demo", "demonstration:demo", "importers.import_paths", "See the main job done on a sample"
    ),
    _ancillary(
        "completion",
        "shells:completion",
        "refs.RefDatabase.iterate",
        "Print what a shell runs to complete branches and addresses",
    ),
    _ancillary("help", "helping:show_help", "__version__", "Show help for a command"),
    _ancillary("version", "version:show_version", "__version__", "Print the version"),
    _plumbing(
        "hash-object",
        "objects.content.write_content",
        "Print the id of content, and store it with -w",
    ),
    _plumbing("cat-file", "odb.ObjectDatabase.read", "Print an object, its kind or its size"),
    _plumbing(
        "write-commit",
        "store.Store.transact",
        "Write the commit that JSON on standard input describes",
    ),
    _plumbing("rev-parse", "revision.resolve", "Print the object ids that revisions mean"),
    _plumbing("rev-list", "graph.topological", "List the commits reachable from revisions"),
    _plumbing(
        "merge-base", "graph.merge_bases", "Print the best common ancestors of two revisions"
    ),
    _plumbing(
        "update-ref",
        "store.Store.transact",
        "Move, make or delete refs, only if they stand where expected",
    ),
    _plumbing(
        "symbolic-ref", "refs.RefDatabase.set_head", "Print or set the ref that HEAD stands for"
    ),
    _plumbing("for-each-ref", "refs.RefDatabase.iterate", "List refs, sorted by name"),
    _plumbing(
        "ls-context", "context.compiling.compile", "List the messages of a revision's context"
    ),
    _plumbing(
        "cat-context",
        "context.streaming.object_stream",
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
        "odb.examining.Examination",
        "Store the objects of packs on standard input one by one",
    ),
    _plumbing(
        "index-pack",
        "odb.receiving.PackReceiver",
        "Make a pack's index, or store packs from standard input",
    ),
    _plumbing(
        "verify-pack",
        "odb.examining.Examination",
        "Read packs to their end and hash everything again",
    ),
    _plumbing(
        "show-index", "odb.index_content.IndexContent", "Print what the index of a pack holds"
    ),
    _plumbing("count-objects", "store.Store", "Count objects and the space they take"),
)

BY_NAME = {command.name: command for command in COMMANDS}
