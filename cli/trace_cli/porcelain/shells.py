"""`trace completion`: what a shell runs to complete commands, branches and addresses."""

from __future__ import annotations

from typer._completion_shared import get_completion_script

from trace_cli.arguments import Argument, takes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation

PROGRAM = "trace"


@takes(Argument("SHELL", "shell", "bash, zsh or fish", choices=("bash", "zsh", "fish")))
def completion(invocation: Invocation, *, shell: str) -> None:
    """Print the script by which a shell completes.

    Put one of these lines where your shell begins: `~/.bashrc`, `~/.zshrc` (behind `compinit`),
    `~/.config/fish/config.fish`. Commands, options, formats, branches, tags and the addresses of HEAD's latest messages
    are completed; zsh and fish show what each message says.

        eval "$(trace completion bash)"
        eval "$(trace completion zsh)"
        trace completion fish | source
    """
    variable = f"_{PROGRAM.upper()}_COMPLETE"
    script = get_completion_script(prog_name=PROGRAM, complete_var=variable, shell=shell)
    invocation.line(script.strip())
