"""The plugin of opencode, a module that runs our hook at events of a session."""

from __future__ import annotations

import json
from collections.abc import Sequence

from trace_store.base.oid import sha256_hex

_MARK = "// Written by Trace, which replaces and removes this file: "
_DIGITS = 16
_BODY = """\
import { spawn } from "node:child_process"

const command = COMMAND
const seen = new Set(["session.created", "session.idle", "session.compacted", "session.error"])

// An event must not wait, print or fail.
const note = (event, session, directory) =>
  new Promise((done) => {
    try {
      const options = { stdio: ["pipe", "ignore", "ignore"], windowsHide: true }
      const child = spawn(command[0], command.slice(1), options)
      const timer = setTimeout(() => child.kill(), 10000)
      const end = () => { clearTimeout(timer); done() }
      child.on("error", end)
      child.on("close", end)
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify({ event, session_id: session, cwd: directory }))
    } catch {
      done()
    }
  })

export const Trace = async ({ directory }) => ({
  event: async ({ event }) => {
    const session = event.properties?.sessionID ?? event.properties?.info?.id
    if (seen.has(event.type) && session) await note(event.type, session, directory)
  },
  "experimental.session.compacting": async (input) => {
    if (input?.sessionID) await note("session.compacting", input.sessionID, directory)
  },
})
"""


def plugin_text(command: Sequence[str]) -> str:
    """Return the module that runs our hook; its first line holds a hash of the rest."""
    body = _BODY.replace("COMMAND", json.dumps([*command]))
    return f"{_MARK}{_hash(body)}\n{body}"


def is_plugin(text: str) -> bool:
    """Return True if a module is ours, of any version."""
    return text.startswith(_MARK)


def is_edited(text: str) -> bool:
    """Return True if a module of ours was edited by hand."""
    first, _, body = text.partition("\n")
    return first.removeprefix(_MARK).strip() != _hash(body)


def command_of(text: str) -> list[str]:
    """Return the command line in a module of ours; empty if there is none."""
    for line in text.splitlines():
        if line.startswith("const command = "):
            try:
                words = json.loads(line.removeprefix("const command = "))
            except ValueError:
                return []
            return [str(word) for word in words] if isinstance(words, list) else []
    return []


def _hash(body: str) -> str:
    return sha256_hex(body.encode())[:_DIGITS]
