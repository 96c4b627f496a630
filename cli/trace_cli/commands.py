"""The table of commands.

Rule: this table is the only source for help, shell completion, the reference page and the lazy imports. A command
declares its options above its function (see `arguments.py`).

Every command imports this module, so it must stay cheap.
"""

from __future__ import annotations

PORCELAIN = "porcelain"
ANCILLARY = "ancillary"
PLUMBING = "plumbing"
HEADINGS = {
    PORCELAIN: "Main commands",
    ANCILLARY: "Ancillary commands: settings and upkeep",
    PLUMBING: "Low-level commands (plumbing), with stable output for scripts",
}

COMMON = {
    "Start a repository": ("init", "import"),
    "Read sessions": ("sessions", "view", "web", "search"),
    "Record messages": ("commit", "compile"),
    "Change the context; nothing is lost": ("edit", "remove", "restore", "pin"),
    "Examine history and state": ("status", "log", "show", "diff"),
    "Branch, merge and undo": ("switch", "merge", "undo"),
    "Make room": ("trim", "compress", "checkpoint"),
    "Record why the code is as it is": ("trajectory", "why"),
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
        help: one line.
    """

    __slots__ = ("_target", "category", "help", "name")

    def __init__(self, name: str, target: str, help: str, category: str) -> None:
        self.name = name
        self.category = category
        self._target = target
        self.help = help

    @property
    def target(self) -> str:
        if self.category == PLUMBING:
            return f"trace_cli.plumbing.{self._target.replace('-', '_')}:run"
        return f"trace_cli.porcelain.{self._target}"


_PORCELAIN = (
    ("init", "commit:init", "Create a repository in a folder"),
    ("import", "import_:import_", "Import transcripts of agent sessions"),
    ("export", "export:export", "Write a session to a file, to read or to resume elsewhere"),
    ("status", "status:status", "Show the branch, its size and what is in progress"),
    ("log", "log:log", "List commits, newest first"),
    ("diff", "diff:diff", "Show changes between two contexts"),
    ("blame", "blame:blame", "Show which commit each message comes from"),
    ("whohas", "blame:whohas", "List the branches that contain a message or a text"),
    ("bisect", "bisect:GROUP", "Find the commit or message that changed an outcome"),
    ("sessions", "sessions:GROUP", "Start, list and compact agent sessions"),
    ("agents", "agents:GROUP", "Spawn agents, and collect their conclusions"),
    ("runs", "runs:GROUP", "List and watch what agents do, step by step"),
    ("search", "search:run", "Search the text of messages"),
    ("view", "view:view", "Read a session"),
    ("web", "web:web", "Watch, read and compare sessions in the browser"),
    ("mcp", "mcp:GROUP", "Let agents search and read the repository over MCP"),
    ("show", "show:show", "Show a commit, a message or an object"),
    ("branch", "branch:branch", "List, create or delete branches"),
    ("switch", "switch:switch", "Switch branches"),
    ("checkout", "switch:checkout", "Switch branches or detach HEAD at a commit"),
    ("tag", "tag:tag", "List, create or delete tags"),
    ("checkpoint", "checkpoint:GROUP", "Save states to return to, and summaries to continue from"),
    ("trajectory", "trajectory:GROUP", "Record what agents do and decide during a task"),
    (
        "why",
        "trajectory_git:why",
        "Show the decisions behind a file, a line or a commit of the code",
    ),
    ("brief", "brief:brief", "Show what an agent should know at the start of a task"),
    ("fork", "fork:fork", "Fork a branch, and compare or merge forks"),
    ("reset", "undo:reset", "Reset the current branch to a commit"),
    ("revert", "revert:revert", "Revert commits by adding new ones"),
    ("undo", "undo:undo", "Undo the last command"),
    ("redo", "undo:redo", "Redo what was undone"),
    ("trash", "trash:GROUP", "List, restore or empty what was removed or deleted"),
    ("reflog", "undo:reflog", "List the previous positions of HEAD or a branch"),
    ("commit", "commit:commit", "Record messages as one commit"),
    ("compile", "compile:compile_", "Print the context to send to a model"),
    ("edit", "edit:edit", "Change the text of a message"),
    ("pin", "edit:pin", "Protect messages from compression"),
    ("important", "edit:important", "Mark messages as important"),
    ("normal", "edit:normal", "Reset the priority of messages"),
    ("skip", "edit:skip", "Leave messages out of the context"),
    ("label", "edit:label", "Add or remove labels of messages"),
    ("remove", "edit:remove", "Hide messages; `trace restore` shows them again"),
    ("restore", "edit:restore", "Restore hidden messages or earlier versions"),
    ("trim", "trim:trim_command", "Make the context fit a token count"),
    ("dedupe", "trim:dedupe", "Replace repeated outputs by pointers to the newest"),
    ("suggest", "trim:suggest_command", "Suggest what to shorten, replace or pin"),
    ("compress", "compress:compress", "Replace messages by a summary"),
    ("expand", "compress:expand", "Show a compressed, removed or edited message in full"),
    ("merge", "merge:merge", "Merge another branch into this one"),
    ("resolve", "merge:resolve", "List and resolve conflicts"),
    ("cherry-pick", "rebase:cherry_pick", "Apply commits or messages from another branch"),
    ("rebase", "rebase:rebase", "Reapply commits on top of another base"),
    ("move", "move:move", "Move messages to another position"),
    ("repair", "repair:repair", "Create a valid branch from a broken one"),
    ("tools", "tools:GROUP", "Set or show the tools that a model is offered"),
    ("usage", "usage:GROUP", "Record or show token usage reported by providers"),
    ("bundle", "bundle:GROUP", "Share branches, tags and sessions as one file"),
    ("hooks", "hooks:GROUP", "Capture sessions of agents and commits of the code as they happen"),
)
_ANCILLARY = (
    ("config", "config:config", "Show and change settings"),
    ("model", "model:GROUP", "Show which model Trace asks, and test it"),
    ("secrets", "secrets:GROUP", "Find secrets and mark false positives"),
    ("trust", "trust:trust", "Allow opening a repository that another user owns"),
    ("fsck", "fsck:fsck", "Verify every object, ref and link"),
    ("purge", "purge:purge", "Delete content permanently and verify that it is gone"),
    ("doctor", "doctor:doctor", "Check file system, permissions and git settings"),
    ("seal", "seal:seal", "Write everything to files that git can commit"),
    ("adopt", "adopt:adopt", "Accept refs that git changed under a running process"),
    ("pack", "seal:pack", "Combine packs and loose objects"),
    ("gc", "gc:gc", "Seal, pack and delete unreachable data"),
    ("prune", "gc:prune", "Delete unreachable objects, also from packs"),
    ("du", "du:du", "Show disk usage"),
    ("demo", "demo:demo", "Show how Trace works, on a sample session"),
    ("completion", "completion:completion", "Print a shell completion script"),
    ("help", "help:show_help", "Show help for a command or a topic"),
    ("version", "help:show_version", "Print the version"),
)
_PLUMBING = (
    ("hash-object", "Compute an object id, and store the object with -w"),
    ("cat-file", "Print the content, type or size of an object"),
    ("write-commit", "Create a commit from a JSON description"),
    ("rev-parse", "Resolve revisions to object ids"),
    ("rev-list", "List the commits reachable from revisions"),
    ("merge-base", "Print the best common ancestors of two revisions"),
    ("update-ref", "Create, move or delete refs, checking their old values"),
    ("symbolic-ref", "Print or set the branch that HEAD points to"),
    ("for-each-ref", "List refs, sorted by name"),
    ("ls-context", "List the messages of a context"),
    ("cat-context", "Print all objects of a context as one stream"),
    ("ls-parts", "List the parts of all messages in a history"),
    ("compile-index", "Print, verify or rebuild a branch's compile index"),
    ("ls-objects", "List objects with their types and sizes"),
    ("pack-objects", "Write the objects named on standard input to packs"),
    ("unpack-objects", "Unpack the packs on standard input into single objects"),
    ("index-pack", "Create a pack index, or store packs from standard input"),
    ("verify-pack", "Verify packs by rehashing every object"),
    ("show-index", "Print the content of a pack index"),
    ("follow", "Print ref moves and emitted events as they happen"),
    ("emit", "Emit an event to `trace follow`"),
    ("count-objects", "Count objects and their disk usage"),
    ("hook", "Note an event of an agent; the hooks of agents run it"),
)

COMMANDS = (
    *[Command(*row, PORCELAIN) for row in _PORCELAIN],
    *[Command(*row, ANCILLARY) for row in _ANCILLARY],
    *[Command(name, name, help, PLUMBING) for name, help in _PLUMBING],
)
ALIASES = {"tr": "trajectory"}
"""Second names of commands, which no list shows."""
BY_NAME = {command.name: command for command in COMMANDS}
BY_NAME |= {name: BY_NAME[command] for name, command in ALIASES.items()}
