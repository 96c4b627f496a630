"""Commits made anew: picks and rebases, step by step, with a to-do list."""
