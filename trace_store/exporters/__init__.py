"""Exporters: a branch becomes a file, for people to read or for an agent program to go on from."""
