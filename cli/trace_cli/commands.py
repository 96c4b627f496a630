"""The table of commands.

Rule: this table is the only source for help, shell completion, the reference page and the lazy imports. A command
declares its options above its function (see `arguments.py`).

Every command imports this module, so it must stay cheap.
"""

from __future__ import annotations

PORCELAIN = "porcelain"
ANCILLARY = "ancillary"
PLUMBING = "plumbing"
PANELS = {
    PORCELAIN: "Main commands",
    ANCILLARY: "Ancillary commands: settings and upkeep",
    PLUMBING: "Low-level commands (plumbing), with stable output for scripts",
}

COMMON = {
    "Start a repository": ("init", "import"),
    "Record messages": ("commit", "compile", "edit"),
    "Examine history and state": ("status", "log", "show", "search"),
    "Branch, merge and undo": ("switch", "merge", "undo"),
    "Make room": ("trim", "compress", "checkpoint"),
    "Share": ("seal", "export", "bundle"),
}
"""The everyday commands that `trace` without a command lists."""

TOPICS = {
    "json": "The objects that --json prints",
    "operations": "The fields and operations of a commit",
    "revisions": "How to name commits, ranges and messages",
}
"""Help pages that are not about one command; the texts are in `topics/`."""


class Command:
    """One row.

    Attributes:
        name: what is typed.
        category: PORCELAIN, ANCILLARY or PLUMBING.
        target: "module:attribute" that runs it, imported on use.
        function: full name of the library function that it calls.
        help: one line.
    """

    __slots__ = ("_function", "_target", "category", "help", "name")

    def __init__(self, name: str, target: str, function: str, help: str, category: str) -> None:
        self.name = name
        self.category = category
        self._target = target
        self._function = function
        self.help = help

    @property
    def target(self) -> str:
        if self.category == PLUMBING:
            return f"trace_cli.plumbing.{self._target.replace('-', '_')}:run"
        return f"trace_cli.porcelain.{self._target}"

    @property
    def function(self) -> str:
        return f"trace_store.{self._function}"


_PORCELAIN = (
    ("init", "commit:init", "repo.repository.Repo.init", "Create a repository in a folder"),
    (
        "import",
        "import_:import_",
        "repo.transcripts.Transcripts.import_",
        "Import transcripts of agent sessions",
    ),
    (
        "export",
        "export:export",
        "repo.transcripts.Transcripts.export",
        "Write a session to a file, to read or to resume elsewhere",
    ),
    (
        "status",
        "status:status",
        "repo.repository.Repo.status",
        "Show the branch, its size and what is in progress",
    ),
    ("log", "log:log", "repo.repository.Repo.log", "List commits, newest first"),
    ("diff", "diff:diff", "repo.line.Line.diff", "Show changes between two contexts"),
    ("blame", "blame:blame", "repo.line.Line.blame", "Show which commit each message comes from"),
    (
        "whohas",
        "blame:whohas",
        "repo.branches.Branches.whohas",
        "List the branches that contain a message or a text",
    ),
    (
        "bisect",
        "bisect:GROUP",
        "repo.branches.Branches.start_bisection",
        "Find the commit or message that changed an outcome",
    ),
    ("sessions", "sessions:GROUP", "repo.transcripts.Transcripts.list", "List agent sessions"),
    ("search", "search:run", "repo.repository.Repo.search", "Search the text of messages"),
    ("view", "view:view", "repo.transcripts.Transcripts.read", "Read a session"),
    ("show", "show:show", "repo.line.Line.resolve", "Show a commit, a message or an object"),
    (
        "branch",
        "branch:branch",
        "repo.branches.Branches.list",
        "List, create or delete branches",
    ),
    ("switch", "switch:switch", "repo.branches.Branches.switch", "Switch branches"),
    (
        "checkout",
        "switch:checkout",
        "repo.branches.Branches.checkout",
        "Switch branches or detach HEAD at a commit",
    ),
    ("tag", "tag:tag", "repo.tags.Tags.create", "List, create or delete tags"),
    (
        "checkpoint",
        "checkpoint:GROUP",
        "checkpoints.handle.Checkpoints.save",
        "Save states to return to, and summaries to continue from",
    ),
    (
        "fork",
        "fork:fork",
        "checkpoints.handle.Forks.__call__",
        "Fork a branch, and compare or merge forks",
    ),
    (
        "trajectory",
        "trajectory:GROUP",
        "trajectories.handle.Trajectories.start",
        "Record what agents do and decide during a task",
    ),
    (
        "why",
        "trajectory_git:why",
        "trajectories.handle.Trajectories.why",
        "Show the decisions behind a file, a line or a commit of the code",
    ),
    ("reset", "undo:reset", "repo.line.Line.reset", "Reset the current branch to a commit"),
    ("revert", "revert:revert", "repo.line.Line.revert", "Revert commits by adding new ones"),
    ("undo", "undo:undo", "repo.repository.Repo.undo", "Undo the last command"),
    ("redo", "undo:redo", "repo.repository.Repo.redo", "Redo what was undone"),
    (
        "trash",
        "trash:GROUP",
        "repo.trash.Trash.list",
        "List, restore or empty what was removed or deleted",
    ),
    (
        "reflog",
        "undo:reflog",
        "repo.branches.Branches.reflog",
        "List the previous positions of HEAD or a branch",
    ),
    ("commit", "commit:commit", "repo.repository.Repo.commit", "Record messages as one commit"),
    (
        "compile",
        "compile:compile_",
        "repo.repository.Repo.compile",
        "Print the context to send to a model",
    ),
    ("edit", "edit:edit", "repo.line.Line.edit", "Change the text of a message"),
    ("pin", "edit:pin", "repo.line.Line.annotate", "Protect messages from compression"),
    ("important", "edit:important", "repo.line.Line.annotate", "Mark messages as important"),
    ("normal", "edit:normal", "repo.line.Line.annotate", "Reset the priority of messages"),
    ("skip", "edit:skip", "repo.line.Line.annotate", "Leave messages out of the context"),
    ("label", "edit:label", "repo.line.Line.annotate", "Add or remove labels of messages"),
    (
        "remove",
        "edit:remove",
        "repo.line.Line.remove",
        "Hide messages; `trace restore` shows them again",
    ),
    (
        "restore",
        "edit:restore",
        "repo.line.Line.restore",
        "Restore hidden messages or earlier versions",
    ),
    (
        "trim",
        "trim:trim_command",
        "repo.compression.Compression.trim",
        "Make the context fit a token count",
    ),
    (
        "dedupe",
        "trim:dedupe",
        "repo.compression.Compression.dedupe",
        "Replace repeated outputs by pointers to the newest",
    ),
    (
        "suggest",
        "trim:suggest_command",
        "repo.compression.Compression.suggest",
        "Suggest what to shorten, replace or pin",
    ),
    (
        "compress",
        "compress:compress",
        "repo.compression.Compression.compress",
        "Replace messages by a summary",
    ),
    (
        "expand",
        "compress:expand",
        "repo.compression.Compression.expand",
        "Show a compressed, removed or edited message in full",
    ),
    ("merge", "merge:merge", "repo.line.Line.merge", "Merge another branch into this one"),
    ("resolve", "merge:resolve", "repo.stopped.Stopped.resolve", "List and resolve conflicts"),
    (
        "cherry-pick",
        "rebase:cherry_pick",
        "repo.line.Line.cherry_pick",
        "Apply commits or messages from another branch",
    ),
    ("rebase", "rebase:rebase", "repo.line.Line.rebase", "Reapply commits on top of another base"),
    ("move", "move:move", "repo.line.Line.move", "Move messages to another position"),
    (
        "repair",
        "repair:repair",
        "repo.transcripts.Transcripts.repair",
        "Create a valid branch from a broken one",
    ),
    (
        "tools",
        "tools:GROUP",
        "repo.line.Line.set_tools",
        "Set or show the tools that a model is offered",
    ),
    (
        "usage",
        "usage:GROUP",
        "repo.line.Line.record_usage",
        "Record or show token usage reported by providers",
    ),
    (
        "bundle",
        "bundle:GROUP",
        "repo.bundles.Bundles.create",
        "Share branches, tags and sessions as one file",
    ),
)
_ANCILLARY = (
    ("config", "config:config", "config.Config.set", "Show and change settings"),
    (
        "model",
        "model:GROUP",
        "llm.settings.read_settings",
        "Show which model Trace asks, and test it",
    ),
    (
        "secrets",
        "secrets:GROUP",
        "repo.maintenance.Maintenance.scan_secrets",
        "Find secrets and mark false positives",
    ),
    (
        "trust",
        "trust:trust",
        "store.trust.trust",
        "Allow opening a repository that another user owns",
    ),
    (
        "fsck",
        "fsck:fsck",
        "repo.maintenance.Maintenance.fsck",
        "Verify every object, ref and link",
    ),
    (
        "purge",
        "purge:purge",
        "repo.maintenance.Maintenance.purge",
        "Delete content permanently and verify that it is gone",
    ),
    (
        "doctor",
        "doctor:doctor",
        "repo.maintenance.Maintenance.doctor",
        "Check file system, permissions and git settings",
    ),
    (
        "seal",
        "seal:seal",
        "repo.maintenance.Maintenance.seal",
        "Write everything to files that git can commit",
    ),
    (
        "adopt",
        "adopt:adopt",
        "repo.maintenance.Maintenance.adopt",
        "Accept refs that git changed under a running process",
    ),
    ("pack", "seal:pack", "repo.maintenance.Maintenance.pack", "Combine packs and loose objects"),
    ("gc", "gc:gc", "repo.maintenance.Maintenance.gc", "Seal, pack and delete unreachable data"),
    (
        "prune",
        "gc:prune",
        "repo.maintenance.Maintenance.prune",
        "Delete unreachable objects, also from packs",
    ),
    ("du", "du:du", "repo.maintenance.Maintenance.du", "Show disk usage"),
    (
        "demo",
        "demo:demo",
        "importers.import_all.import_paths",
        "Show how Trace works, on a sample session",
    ),
    (
        "completion",
        "completion:completion",
        "refs.database.RefDatabase.iterate",
        "Print a shell completion script",
    ),
    ("help", "help:show_help", "__version__", "Show help for a command or a topic"),
    ("version", "version:show_version", "__version__", "Print the version"),
)
_PLUMBING = (
    (
        "hash-object",
        "objects.content.write_content",
        "Compute an object id, and store the object with -w",
    ),
    (
        "cat-file",
        "odb.database.ObjectDatabase.read",
        "Print the content, type or size of an object",
    ),
    ("write-commit", "store.handle.Store.transact", "Create a commit from a JSON description"),
    ("rev-parse", "revision.resolve", "Resolve revisions to object ids"),
    ("rev-list", "graph.topological", "List the commits reachable from revisions"),
    ("merge-base", "graph.merge_bases", "Print the best common ancestors of two revisions"),
    (
        "update-ref",
        "store.handle.Store.transact",
        "Create, move or delete refs, checking their old values",
    ),
    (
        "symbolic-ref",
        "refs.database.RefDatabase.set_head",
        "Print or set the branch that HEAD points to",
    ),
    ("for-each-ref", "refs.database.RefDatabase.iterate", "List refs, sorted by name"),
    ("ls-context", "context.strategies.compile", "List the messages of a context"),
    (
        "cat-context",
        "context.object_stream.object_stream",
        "Print all objects of a context as one stream",
    ),
    ("ls-parts", "objects.message.part_blobs", "List the parts of all messages in a history"),
    (
        "compile-index",
        "context.compile_index.IndexView",
        "Print, verify or rebuild a branch's compile index",
    ),
    ("ls-objects", "odb.reachable.reachable", "List objects with their types and sizes"),
    (
        "pack-objects",
        "odb.pack_writer.PackEncoder",
        "Write the objects named on standard input to packs",
    ),
    (
        "unpack-objects",
        "odb.verify.PackVerifier",
        "Unpack the packs on standard input into single objects",
    ),
    (
        "index-pack",
        "odb.ingest.PackReceiver",
        "Create a pack index, or store packs from standard input",
    ),
    ("verify-pack", "odb.verify.PackVerifier", "Verify packs by rehashing every object"),
    ("show-index", "odb.index_scan.IndexContent", "Print the content of a pack index"),
    ("follow", "store.handle.Store.follow", "Print ref moves and emitted events as they happen"),
    ("emit", "store.handle.Store.emit", "Emit an event to `trace follow`"),
    ("count-objects", "store.handle.Store", "Count objects and their disk usage"),
)

COMMANDS = (
    *[Command(*row, PORCELAIN) for row in _PORCELAIN],
    *[Command(*row, ANCILLARY) for row in _ANCILLARY],
    *[Command(name, name, function, help, PLUMBING) for name, function, help in _PLUMBING],
)
BY_NAME = {command.name: command for command in COMMANDS}
