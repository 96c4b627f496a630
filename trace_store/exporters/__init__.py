"""Exporters: branches written as files, for readers or to resume a session."""
