"""Completion of a program's words in bash, zsh and fish, and by kubectl for a plugin.

The law: click knows the words; this module only prints them. Nothing is read but the command line: no cluster, no
configuration. A shell waits for it at each press of Tab, so it imports click and nothing slow: no event loop.
https://click.palletsprojects.com/en/stable/shell-completion/
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from sidecar.cli.usage import Command, Decorated

SHELLS: Final = ("bash", "zsh", "fish")
# https://pkg.go.dev/github.com/spf13/cobra#ShellCompDirective
_ONLY_THESE, _FILES_TOO, _FOLDERS = 4, 0, 16
_DIRECTIVES: Final = {"plain": _ONLY_THESE, "file": _FILES_TOO, "dir": _FOLDERS}
_EPILOG: Final = """\b
Examples:
  source <({0} completion bash)                                     in ~/.bashrc
  {0} completion bash > /etc/bash_completion.d/{0}
  source <({0} completion zsh)                                      in ~/.zshrc, after compinit
  {0} completion fish > ~/.config/fish/completions/{0}.fish
"""


def completion_command(program: str) -> click.Command:
    """The subcommand `completion` of a program."""

    @click.command(cls=Command, epilog=_EPILOG.format(program))
    @click.argument("shell", type=click.Choice(SHELLS))
    @click.pass_context
    def completion(ctx: click.Context, /, *, shell: str) -> None:
        """Print a script with which a shell completes the program's words."""
        click.echo(format_script(ctx.find_root().command, program, shell))

    return completion


def completion_option(program: str) -> Callable[[Decorated], Decorated]:
    """`--completion SHELL`, for a program without subcommands."""

    def show(ctx: click.Context, _: click.Parameter, shell: str | None) -> None:
        if shell and not ctx.resilient_parsing:
            click.echo(format_script(ctx.command, program, shell))
            ctx.exit()

    return click.option(
        "--completion",
        type=click.Choice(SHELLS),
        is_eager=True,
        expose_value=False,
        allow_from_autoenv=False,
        callback=show,
        help=f"Print a script with which a shell completes the program's words: source <({program} --completion bash).",
    )


def format_script(command: click.Command, program: str, shell: str) -> str:
    """The script that makes the shell ask the program, under its name on the PATH."""
    made = get_completion_class(shell)
    if made is None:
        raise ValueError(f"no completion for {shell}")
    # The name that click takes for a program that is started by this name.
    return made(command, {}, program, f"_{program}_COMPLETE".replace("-", "_").upper()).source()


def complete_files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """`shell_complete` of a parameter that is a file, but whose type is not click.Path."""
    return [CompletionItem(incomplete, type="file")]


def complete_for_kubectl(command: click.Command, words: Sequence[str]) -> str:
    """What kubectl reads of `kubectl_complete-PLUGIN`: a line for each candidate, then a directive.

    https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/ and KEP-2379 (shell completion for plugins)
    """
    *before, last = words or [""]
    found = ShellComplete(command, {}, "kubectl", "").get_completions(list(before), last)
    lines = [_candidate(one) for one in found if one.type == "plain"]
    directive = next((_DIRECTIVES[one.type] for one in found if one.type != "plain"), _ONLY_THESE)
    return "".join(f"{line}\n" for line in [*lines, f":{directive}"])


def _candidate(item: CompletionItem) -> str:
    first = (item.help or "").partition("\n")[0]
    return f"{item.value}\t{first}" if first else str(item.value)
