"""Fixtures: the command line in a repository."""

from tests.cli.conftest import ok, repository, trace

__all__ = ["ok", "repository", "trace"]
