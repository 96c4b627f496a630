r"""One run of the command line: its environment, input and output.

Rule: commands use the streams and the environment of the process through an Invocation only. Data goes to standard
output as UTF-8 bytes with "\n" line ends, in every locale. Everything else goes to standard error.
"""

from __future__ import annotations

import os
import stat
import sys
from errno import EAGAIN

import trace_store
from trace_cli.failures import OutputClosedError, usage_error
from trace_store import errors
from trace_store.base.environment import Environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from subprocess import Popen
    from typing import Any, BinaryIO, TypeAlias

    from trace_store.errors import TraceError

    Text: TypeAlias = str | Iterable[str]
    """A line, or lines, which are computed only if they are printed."""
    Results: TypeAlias = Generator[tuple[Any, Text], None, None]
    """What a command yields: results, as `render.records.write_result` takes them, each with its text."""
    ResultsAndCode: TypeAlias = Generator[tuple[Any, Text], None, int]
    """The same, and the exit code at the end."""

PAGER_VARIABLES = {"LESS": "FRX", "LV": "-c"}
"""Default pager settings, as in git; the user's variables win."""
MAXIMUM_INPUT_BYTES = 1024 * 1024 * 1024
"""Limit of standard input and of files that are read as a whole."""


_DESCRIPTOR_PREFIXES = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
READ_BYTES = 64 * 1024
"""Read size of line-by-line input."""


class Invocation:
    """One run of the command line.

    Attributes:
        environment: environment variables.
        directory: the value of --dir, or None.
        terminal: whether standard output is a terminal.
        interactive: whether standard error is a terminal, so that progress can be shown.
        color: whether output may have colors.
        pages: whether a pager may be used; False with --no-pager.
        failure: the error of a first run that met a missing object, in a rerun that shows what there is; else None.
        wrote: whether anything was written to standard output.
        output_failed: whether standard output is broken.
        as_json: whether results are printed as JSON.
        quiet: whether results are not printed at all.
        run: runs another command; set by `main`.
        write_result: writes a result as JSON; set by `main`.
        escape: escapes control sequences in notes, and in output on a terminal; set by `main`.
    """

    __slots__ = (
        "_error",
        "_input",
        "_output",
        "_pager",
        "as_json",
        "color",
        "directory",
        "environment",
        "escape",
        "failure",
        "interactive",
        "output_failed",
        "pages",
        "quiet",
        "run",
        "terminal",
        "write_result",
        "wrote",
    )

    def __init__(
        self,
        *,
        environment: Environment | None = None,
        output: BinaryIO | None = None,
        error: BinaryIO | None = None,
        input: BinaryIO | None = None,
        terminal: bool | None = None,
    ) -> None:
        self.environment = Environment.read() if environment is None else environment
        self.directory: str | None = None
        self._output = output
        self._error = error
        self._input = input
        self.terminal = _is_terminal(sys.stdout) if terminal is None else terminal
        self.interactive = _is_terminal(sys.stderr) if terminal is None else terminal
        self.color = self.terminal and self.environment.color
        self.output_failed = False
        self.failure: TraceError | None = None
        self.wrote = False
        self.pages = terminal is None
        self._pager: Popen[bytes] | None = None
        self.as_json = False
        self.quiet = False
        self.run: Callable[[list[str]], int] | None = None
        self.write_result: Callable[[Any], None] | None = None
        self.escape: Callable[[str], str] | None = None

    def call(
        self, function: Callable[..., Results | ResultsAndCode | int | None], values: dict[str, Any]
    ) -> int:
        """Call a command with the values of its options, and return its exit code.

        Its results are printed as text, as JSON or, with --quiet, which wins, not at all.
        """
        self.as_json = values.pop("as_json", False)
        self.quiet = values.pop("quiet", False)
        done = function(self, **values)
        if done is None or isinstance(done, int):
            return done or 0
        try:
            while True:
                result, text = next(done)
                if self.as_json and not self.quiet:
                    assert self.write_result is not None
                    self.write_result(result)
                elif not self.quiet:
                    for line in (text,) if isinstance(text, str) else text:
                        self.line(line)
        except StopIteration as end:
            return end.value or 0
        finally:
            done.close()

    def apply_global_options(
        self,
        folders: list[str],
        directory: str | None,
        *,
        color: bool = True,
        pages: bool = True,
    ) -> None:
        """Apply the global options: -C folders in order, --dir, --no-color, --no-pager.

        Raises:
            InvalidInputError: a folder does not exist.
        """
        for folder in folders if self.failure is None else ():  # a rerun is already in the last one
            try:
                os.chdir(folder)
            except OSError as error:
                raise usage_error(f"cannot change to {folder!r}: {error.strerror}") from error
        if directory is not None:
            self.directory = directory
        self.color = self.color and color
        self.pages = self.pages and pages

    def page(self) -> None:
        """Start the user's pager for the output that follows, if standard output is a terminal.

        The pager is `TRACE_PAGER`, else `GIT_PAGER`, git's `core.pager`, `PAGER` or `less`, set to show colors and to
        quit if the output fits on one screen. An empty value or `cat` means none.
        """
        if not self.terminal or not self.pages or self._output is not None:
            return

        command = self.environment.pager
        if command is None:
            command = (
                trace_store.maintenance.doctor.core_pager(self.environment)
                or self.environment.other_pager
            )
        if command.strip() in ("", "cat"):
            return
        import shlex  # imported here: both load slowly, and only a pager needs them
        import subprocess

        # Despite its name, `secrets` holds all environment variables.
        variables = {**dict(self.environment.secrets), **PAGER_VARIABLES}
        variables.update((n, v) for n, v in self.environment.secrets if n in PAGER_VARIABLES)
        try:
            self._pager = subprocess.Popen(
                shlex.split(command), stdin=subprocess.PIPE, env=variables
            )
        except (OSError, ValueError):
            return  # the pager is not installed
        self._output = self._pager.stdin  # type: ignore[assignment]

    def close(self) -> bool:
        """Flush the output and wait for the pager; return True if a pager was used.

        Without a pager, raises as `write`.
        """
        pager, self._pager = self._pager, None
        if pager is None:
            self.flush()
            return False
        try:
            self.flush()
            if pager.stdin is not None:
                pager.stdin.close()
        except (OSError, ValueError, OutputClosedError):
            pass  # the pager was closed before the end
        finally:
            self._output = None
            while True:
                try:
                    pager.wait()
                    break
                except KeyboardInterrupt:
                    continue  # Ctrl-C in the pager cancels a search
        self.output_failed = False
        return True

    @property
    def folder(self) -> str:
        """The working directory.

        Raises:
            InvalidInputError: it was deleted.
        """
        try:
            return os.getcwd()
        except OSError as error:
            raise usage_error(
                "the current folder does not exist", "change to another folder"
            ) from error

    def write(self, data: bytes) -> None:
        """Write data to standard output; on a terminal, the data is escaped.

        Raises:
            OutputClosedError: the reader stopped reading.
            StorageError: the data cannot be written.
        """
        self.wrote = True
        if self._output is None:
            if sys.stdout is None:
                raise self._output_error(None)
            self._output = sys.stdout.buffer
        if self.terminal and self.escape is not None:
            data = self.escape(data.decode("utf-8", "backslashreplace")).encode("utf-8")
        rest = memoryview(data)
        try:
            # Unbuffered output (PYTHONUNBUFFERED) may accept only part of the data.
            while len(rest):
                taken = self._output.write(rest)
                if taken is None:
                    raise BlockingIOError(EAGAIN, "it does not accept data")
                rest = rest[taken:]
        except (OSError, ValueError) as error:
            raise self._output_error(error) from error

    def line(self, text: str = "") -> None:
        """Write a line of escaped text to standard output."""
        self.write(text.encode("utf-8", "backslashreplace") + b"\n")

    def tell_came_back(self, count: int) -> None:
        """Say how many objects that git had removed were written again."""
        what = "1 object" if count == 1 else f"{count:,} objects"
        self.note(f"note: restored {what} that git had removed; `git add .trace` keeps them")

    def note(self, text: str, end: str = "\n") -> None:
        """Write escaped text to standard error."""
        self._write_error((text if self.escape is None else self.escape(text)) + end)

    def overwrite(self, text: str) -> None:
        """Overwrite the current line on standard error."""
        self._write_error("\r" + (text if self.escape is None else self.escape(text)))

    def _write_error(self, text: str) -> None:
        self.flush()
        if self._error is None and sys.stderr is not None:
            self._error = sys.stderr.buffer
        if self._error is None:
            return
        try:
            self._error.write(text.encode("utf-8", "backslashreplace"))
            self._error.flush()
        except (OSError, ValueError):
            pass  # there is nowhere left to report it

    def flush(self) -> None:
        """Flush the output; raises like `write`."""
        if self._output is not None and not self.output_failed:
            try:
                self._output.flush()
            except (OSError, ValueError) as error:
                raise self._output_error(error) from error

    def _output_error(self, error: OSError | ValueError | None) -> Exception:
        """Record that standard output is broken, and return the error to raise."""
        self.output_failed = True
        if isinstance(error, BrokenPipeError):
            return OutputClosedError()
        reason = "it is closed" if error is None else getattr(error, "strerror", None) or str(error)
        return errors.StorageError(f"cannot write to standard output: {reason}")

    @property
    def stdin(self) -> BinaryIO:
        """Standard input as bytes.

        Raises:
            UnreadableInputError: there is none.
        """
        if self._input is None:
            if sys.stdin is None:
                raise errors.UnreadableInputError("standard input is closed", path="-")
            self._input = sys.stdin.buffer
        return self._input

    @property
    def waits_for_keyboard(self) -> bool:
        """Whether standard input is a keyboard."""
        return self._input is None and _is_terminal(sys.stdin)

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of standard input with line ends; flush output before each read.

        A program that waits for each answer gets it at once, and a batch of lines needs few flushes.
        """
        partial: list[bytes] = []
        while True:
            self.flush()
            data = self.stdin.read1(READ_BYTES)  # type: ignore[attr-defined]
            if not data:
                break
            first, end, rest = data.partition(b"\n")
            partial.append(first + end)
            if end:
                yield b"".join(partial)
                *whole, last = rest.split(b"\n")
                for line in whole:
                    yield line + end
                partial = [last]
        if any(partial):
            yield b"".join(partial)

    def input_lines(self) -> list[str]:
        """Return the nonempty lines of standard input.

        Raises:
            UnreadableInputError: a line is not UTF-8.
        """
        lines: list[str] = []
        for number, line in enumerate(self.stdin, 1):
            try:
                text = line.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise errors.UnreadableInputError(
                    f"line {number} of standard input is not UTF-8", line=number
                ) from error
            if text:
                lines.append(text)
        return lines

    def read(self, path: str | None) -> bytes:
        """Return the content of a file, or of standard input for None or "-".

        Raises:
            UnreadableInputError: the file cannot be read, is a folder or a named pipe, or is over 1 GiB.
        """
        name = "standard input" if path in (None, "-") else repr(path)
        try:
            if path is None or path == "-":
                data = self.stdin.read(MAXIMUM_INPUT_BYTES + 1)
            else:
                _refuse_named_pipe(path)
                with open(path, "rb") as file:
                    data = file.read(MAXIMUM_INPUT_BYTES + 1)
        except OSError as error:
            raise errors.UnreadableInputError(
                f"cannot read {name}: {error.strerror}", path=path
            ) from error
        if len(data) > MAXIMUM_INPUT_BYTES:
            raise errors.UnreadableInputError(f"{name} holds more than 1 GiB", path=path)
        return data


def _refuse_named_pipe(path: str) -> None:
    """Refuse named pipes, because reading one can block forever.

    A shell's process substitution `<(…)` is also a pipe, but its path names a descriptor, so it is accepted.

    Raises:
        UnreadableInputError: the path is a named pipe.
    """
    try:
        is_pipe = stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return  # opening it reports what is wrong
    if is_pipe and not path.startswith(_DESCRIPTOR_PREFIXES):
        raise errors.UnreadableInputError(
            f"not a regular file: {path!r} is a named pipe; use - for standard input", path=path
        )


def _is_terminal(stream: object) -> bool:
    try:
        return bool(stream.isatty())  # type: ignore[attr-defined]
    except (AttributeError, ValueError, OSError):
        return False  # closed, or replaced by an object that is not a file
