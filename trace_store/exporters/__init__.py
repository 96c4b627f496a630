"""Exporters: branches written as files, for readers or for agents that resume the session."""
