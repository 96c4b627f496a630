"""The Typer application: built from the command table, importing only the command that runs.

Rule: the Typer form of a command is generated from its declaration (`arguments.py`), so that help, completion and the
small parser cannot drift apart.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any

import typer
from typer._click import Context
from typer._click.core import Command as ClickCommand
from typer._click.exceptions import ClickException, UsageError
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_command_from_info
from typer.models import CommandInfo

from trace_cli.advice import INSTEAD
from trace_cli.arguments import (
    ANY,
    COMMAND,
    OPTIONAL,
    SOME,
    Argument,
    Option,
    arguments_of,
    bare_flags,
    takes_command,
    with_flags,
)
from trace_cli.commands import BY_NAME, COMMANDS, COMMON, HEADINGS, PLUMBING, Command
from trace_cli.failures import EXIT_OK, EXIT_USAGE, usage_error
from trace_cli.render.escape import one_line
from trace_cli.runtime import Invocation
from trace_cli.subcommands import Group
from trace_store import __version__

HELP = "Version control for what a language model is shown."
EPILOG = (
    "See `trace help -a` for all commands, `trace help COMMAND` for one of them, `trace help json` for what --json"
    " prints, and `trace help revisions` for how to name commits and messages."
)
NOT_A_NUMBER = ("is not a valid int range", "is not an integer")
"""Typer's words for a value that is not an integer, and ours."""
GLOBAL_OPTIONS = ("--no-pager", "--no-color", "--dir", "-C")
OPTION_ORDER = "trace_cli.option-order"
"""The context's key for the names of the given parameters in order, repeated ones repeatedly."""
SETTINGS = {"help_option_names": ["-h", "--help"]}


class LazyGroup(TyperGroup):
    """The commands of the table; only the one that runs is imported."""

    _listing = False

    def list_commands(self, ctx: Context) -> list[str]:
        return [command.name for command in COMMANDS]

    def get_command(self, ctx: Context, cmd_name: str) -> ClickCommand | None:
        if not self.commands:
            # A misspelt name is compared with these, too.
            self.commands = {command.name: _stub(command) for command in COMMANDS}
        if self._listing or cmd_name not in BY_NAME:
            return self.commands.get(cmd_name)
        return load_command(BY_NAME[cmd_name])

    def resolve_command(self, ctx: Context, args: list[str]) -> Any:
        if args and args[0] in INSTEAD and args[0] not in BY_NAME:
            raise usage_error(f"no such command {args[0]!r}", INSTEAD[args[0]])
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Context, formatter: Any) -> None:
        self._listing = True
        super().format_help(ctx, formatter)

    def format_commands(self, ctx: Context, formatter: Any) -> None:
        for title, names in COMMON.items():
            with formatter.section(title):
                formatter.write_dl([(name, BY_NAME[name].help) for name in names])

    def shell_complete(self, ctx: Context, incomplete: str) -> Any:
        self._listing = True
        return super().shell_complete(ctx, incomplete)


class OrderedCommand(TyperCommand):
    """A command that remembers the order of its options, which Typer passes separately.

    Attributes:
        bare: the flags of the option that `-5` is short for; empty if there is none.
    """

    bare: Sequence[str] = ()

    def make_parser(self, ctx: Context) -> Any:
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_and_remember(args: list[str]) -> Any:
            values, rest, order = parse(with_flags(self.bare, args))
            ctx.meta[OPTION_ORDER] = [parameter.name for parameter in order]
            return values, rest, order

        parser.parse_args = parse_and_remember  # type: ignore[method-assign]
        return parser


def load_command(command: Command) -> ClickCommand:
    """Return the Typer command of a row, its module imported."""
    module, _, attribute = command.target.partition(":")
    target = getattr(import_module(module), attribute)
    if isinstance(target, Group):
        group = get_command(_group(command, target))
        group.name = command.name
        return group
    info = CommandInfo(
        command.name,
        cls=OrderedCommand,
        callback=_generated(arguments_of(target) or (), target),
        context_settings=SETTINGS,
        help=_help(command, target),
        rich_help_panel=HEADINGS[command.category],
    )
    made = get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode=None)
    assert isinstance(made, OrderedCommand)
    made.bare = bare_flags(arguments_of(target) or ())
    return made


def root_command() -> ClickCommand:
    """Return the whole application as one command."""
    app = typer.Typer(
        name="trace",
        cls=LazyGroup,
        help=HELP,
        epilog=EPILOG,
        context_settings=SETTINGS,
        rich_markup_mode=None,
        invoke_without_command=True,
    )
    app.callback()(_root)
    return get_command(app)


def run_typer(words: list[str], invocation: Invocation) -> int:
    """Run the words through Typer and return the exit code; domain errors pass through."""
    program = "trace-store" if sys.argv[0].endswith("trace-store") else "trace"
    try:
        result = root_command().main(
            words,
            prog_name=program,
            standalone_mode=False,
            windows_expand_args=False,
            obj=invocation,
        )
    except ClickException as error:
        _explain(error, invocation, program, words)
        return error.exit_code
    except typer.Abort:
        return EXIT_USAGE
    return result if isinstance(result, int) else EXIT_OK


def _root(
    ctx: typer.Context,
    directory: Annotated[
        str | None, typer.Option("--dir", metavar="DIR", help="Use this repository.")
    ] = None,
    folders: Annotated[
        list[str] | None, typer.Option("-C", metavar="PATH", help="Run as if started in PATH.")
    ] = None,
    no_color: Annotated[bool, typer.Option("--no-color", help="Do not color the output.")] = False,
    no_pager: Annotated[bool, typer.Option("--no-pager", help="Do not use a pager.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> int:
    invocation: Invocation = ctx.obj
    invocation.apply_global_options(
        folders or [], directory, color=not no_color, pages=not no_pager
    )
    if version:
        invocation.line(f"trace {__version__}")
        raise typer.Exit(EXIT_OK)
    if ctx.invoked_subcommand is None:
        invocation.line(ctx.get_help())
        raise typer.Exit(EXIT_USAGE)
    return EXIT_OK


def _explain(error: ClickException, invocation: Invocation, program: str, words: list[str]) -> None:
    """Print a usage error and where to read more."""
    message = one_line(error.format_message()).rstrip(".").replace(*NOT_A_NUMBER)
    invocation.note(f"trace: error: {message[:1].lower()}{message[1:]}")
    context = error.ctx if isinstance(error, UsageError) else None
    path = context.command_path if context is not None else _command_path(program, words)
    option = message.removeprefix("No such option: ").split(" ")[0]
    if path != program and option in GLOBAL_OPTIONS:
        invocation.note(f"hint: {option} goes before the command, as in `{program} {option} …`")
    elif path == program and message.startswith("No such command"):
        invocation.note(f"hint: `{program} help -a` lists all commands")
    else:
        invocation.note(f"hint: `{path} --help` shows the usage")


def _stub(command: Command) -> TyperCommand:
    return TyperCommand(command.name, help=command.help, rich_help_panel=HEADINGS[command.category])


def _help(command: Command, target: Any) -> str:
    """Return the row's line, and the rest of the docstring: of the module for plumbing, else of the function."""
    source = inspect.getmodule(target) if command.category == PLUMBING else target
    return "\n\n".join([f"{command.help}.", *_paragraphs(source)[1:]])


def _paragraphs(source: Any) -> list[str]:
    """Split a docstring into paragraphs, marked so that indented lines are not filled."""
    paragraphs = (inspect.getdoc(source) or "").split("\n\n")
    return [f"\b\n{each}" if each.startswith("    ") else each for each in paragraphs]


def _group(command: Command, group: Group) -> typer.Typer:
    """Return the Typer form of a group."""
    app = typer.Typer(
        help="\n\n".join(filter(None, (f"{command.help}.", group.help))),
        invoke_without_command=group.bare is not None,
        no_args_is_help=False,
        rich_markup_mode=None,
        add_completion=False,
    )
    if group.bare is not None:
        app.callback()(_alone(arguments_of(group.bare) or (), group.bare))
    for name, function in group.commands.items():
        items = arguments_of(function) or ()
        settings = {"allow_interspersed_args": not takes_command(items)}
        text = "\n\n".join(_paragraphs(function))
        app.command(name, help=text, context_settings=settings)(_generated(items, function))
    return app


def _alone(items: Sequence[Option | Argument], run: Any) -> Any:
    """Return the callback of a group without a subcommand; options before a subcommand are an error."""
    generated = _generated(items, run)

    def call(ctx: typer.Context, **given: Any) -> int:
        if ctx.invoked_subcommand is None:
            return int(generated(ctx, **given))
        for item in items:
            if isinstance(item, Option) and given[item.name] not in (None, False, item.default):
                raise usage_error(f"{item.flags[0]} goes after {ctx.invoked_subcommand}")
        return EXIT_OK

    call.__signature__ = generated.__signature__  # type: ignore[attr-defined]
    call.__annotations__ = generated.__annotations__
    return call


def _generated(items: Sequence[Option | Argument], run: Any) -> Any:
    """Return a callback whose signature declares the command's parameters to Typer."""
    parameters = [
        inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    ]
    for item in items:
        annotation, default = _option(item) if isinstance(item, Option) else _argument(item)
        parameters.append(
            inspect.Parameter(
                item.name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
            )
        )

    def call(ctx: typer.Context, **given: Any) -> int:
        values = _as_parsed(items, given, ctx.meta.get(OPTION_ORDER, ()))
        invocation: Invocation = ctx.obj
        return invocation.call(run, values)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    return call


def _as_parsed(
    items: Sequence[Option | Argument], given: dict[str, Any], order: Sequence[str]
) -> dict[str, Any]:
    """Convert Typer's values to those of the parser in `arguments.py`."""
    values: dict[str, Any] = {}
    joined: dict[str, tuple[list[Any], Iterator[Any]]] = {}
    for item in items:
        value = given[item.name]
        if item.choices:
            values[item.name] = item.default if value is None else str(value)
        elif isinstance(item, Option) and item.joins:
            together = values.setdefault(item.joins, [])
            joined[item.name] = together, iter(value or ())
        elif isinstance(item, Option) and not item.many:
            values[item.name] = value
        elif isinstance(item, Option) or item.count in (ANY, SOME, COMMAND):
            values[item.name] = list(value or ())
        else:
            values[item.name] = value
    for name in order:
        if name in joined:
            together, rest = joined[name]
            together.append((name, next(rest)))
    return values


def _completing(kind: str) -> Callable[[str], Any]:
    """Return the completion function of a kind of value; it is imported only when completing."""

    def complete(incomplete: str) -> Any:
        known = import_module("trace_cli.porcelain.completion").COMPLETED.get(kind)
        if known is None:
            return []
        module, _, attribute = known.partition(":")
        return getattr(import_module(module), attribute)(incomplete)

    return complete


def _option(item: Option) -> tuple[Any, Any]:
    if not item.metavar:
        flags = [f"{flag}/{item.off}" for flag in item.flags] if item.off else item.flags
        return Annotated[bool, typer.Option(*flags, help=f"{item.help}.")], bool(item.off)
    if item.choices:
        known = typer.Option(*item.flags, help=f"{item.help}.")
        if not item.default:  # Typer accepts no default outside the choices
            return Annotated[_choice(item.choices) | None, known], None
        return Annotated[_choice(item.choices), known], item.default
    value: Any = int if item.number else str
    if item.many or item.joins:
        value = list[str]
    settings: dict[str, Any] = {"min": item.least, "max": item.most} if item.number else {}
    settings["autocompletion"] = _completing(item.completes)
    declared = typer.Option(*item.flags, metavar=item.metavar, help=f"{item.help}.", **settings)
    if item.default is not None:
        return Annotated[value, declared], item.default
    return Annotated[value | None, declared], None


def _choice(choices: Sequence[str]) -> Any:
    """Return an enumeration of the accepted values, as Typer wants it."""
    return StrEnum("Choice", {name.upper(): name for name in choices})


def _argument(item: Argument) -> tuple[Any, Any]:
    if item.choices:
        known = typer.Argument(metavar=item.metavar, help=f"{item.help}.")
        return Annotated[_choice(item.choices), known], inspect.Parameter.empty
    repeats = item.count in (ANY, SOME) and not item.metavar.endswith("...")
    settings = typer.Argument(
        metavar=f"{item.metavar}..." if repeats and " " not in item.metavar else item.metavar,
        help=f"{item.help}.",
        show_default=bool(item.default),
        autocompletion=_completing(item.completes),
    )
    if item.count == OPTIONAL and item.default is not None:
        return Annotated[str, settings], item.default
    if item.count == OPTIONAL:
        return Annotated[str | None, settings], None
    if item.count == ANY:
        return Annotated[list[str] | None, settings], None
    if item.count in (SOME, COMMAND):
        return Annotated[list[str], settings], inspect.Parameter.empty
    return Annotated[str, settings], inspect.Parameter.empty


def _command_path(program: str, words: list[str]) -> str:
    """Return the program and the command among words; Typer names none for an option without a value."""
    command = next((word for word in words if word in BY_NAME), "")
    return f"{program} {command}".rstrip()
