"""A typical session of a coding agent, long enough to be worth trimming."""

from __future__ import annotations

import json
from typing import Any

from trace_store import Message, Repo, Text, ToolCall, ToolResult

LONG = "\n".join(f"line {n}: the value of setting_{n} is {n * 7919 % 10007}" for n in range(120))


def call(number: int, tool: str, **arguments: Any) -> ToolCall:
    return ToolCall(f"call_{number}", tool, json.dumps(arguments))


def result(number: int, text: str, *, failed: bool = False) -> ToolResult:
    return ToolResult(f"call_{number}", text, failed)


def append_steps(repo: Repo, start: int, count: int) -> None:
    """Append steps of an agent: each a command call with its long output."""
    for number in range(start, start + count):
        repo.commit([Message("assistant", [call(number, "Bash", command=f"make part_{number}")])])
        text = f"{LONG}\noutput number {number}\nExit code 0"
        repo.commit([Message("tool", [result(number, text)])])


def agent_session(repo: Repo) -> None:
    """Append repeated reads and outputs, a failure, parallel reads, and more steps."""
    repo.append("system", "You are a careful engineer.")
    repo.append("user", "Fix the build of the parser.")
    read = call(1, "Read", file_path="src/parser.py")
    repo.commit([Message("assistant", [Text("Let me look."), read])])
    repo.commit([Message("tool", [result(1, LONG)])])
    two = [call(2, "Read", file_path="src/lexer.py"), call(3, "Bash", command="pytest -q")]
    repo.commit([Message("assistant", two)])
    failure = f"ImportError: no module named lexer\n{LONG}\nExit code 2"
    repo.commit([Message("tool", [result(2, LONG.upper()), result(3, failure, failed=True)])])
    repo.commit([Message("assistant", [call(4, "Bash", command="cat notes.txt | sort")])])
    repo.commit([Message("tool", [result(4, LONG.title())])])
    repo.commit([Message("assistant", [call(5, "Bash", command="sort notes.txt")])])
    repo.commit([Message("tool", [result(5, LONG.title())])])
    repo.append("assistant", "The import is wrong.\n\n" + "More about it. " * 80)
    repo.append("user", "Go on, and keep the public names.")
    append_steps(repo, 10, 12)
    repo.commit([Message("assistant", [call(90, "Read", file_path="src/parser.py")])])
    repo.commit([Message("tool", [result(90, LONG + "\nend")])])
    repo.append("assistant", "Done: the build works.")
    repo.append("user", "Thanks. Now the documentation.")
    repo.append("assistant", "I begin with the README.")
