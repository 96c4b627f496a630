"""Names of the facts that the first commit of an agent's branch records: see `sessions.facts`."""

PREFIX = "session."
CALL = f"{PREFIX}call"
"""The id of the tool call that started it."""
PURPOSE = f"{PREFIX}purpose"
"""Its first prompt, or what its program says that it is for."""
AGENT = f"{PREFIX}agent"
"""The id of an imported agent; a branch that only inherits the facts of its parent has another one."""
