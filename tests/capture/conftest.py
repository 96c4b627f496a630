"""Commands run as in the tests of the command line."""

from tests.cli.conftest import repository as repository
from tests.cli.conftest import trace as trace
