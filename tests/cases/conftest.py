"""Commands run in this process, as in the tests of the command line."""

from tests.cli.conftest import ok, repository, trace

__all__ = ["ok", "repository", "trace"]
