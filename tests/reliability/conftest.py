"""Commands run in this process, as the tests of the command line run them."""

from tests.cli.conftest import ok, repository, trace

__all__ = ["ok", "repository", "trace"]
