"""Verbs on history: write commits, walk them, say how things stand."""
