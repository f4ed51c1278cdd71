"""A program that runs without a subcommand, and has a few beside that.

The law: only the first word decides. The flags of the program are neither read nor required for a subcommand, and its
variables share the program's prefix. Tested in tests/proxy/test_cli.py.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import click

from sidecar.cli.usage import Program


class ProgramWithCommands(Program):
    """`commands` by name, often LazyCommands; --help of the program shows them in its examples."""

    def __init__(self, *args: Any, commands: MutableMapping[str, click.Command], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.commands = commands

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of the program, or of the subcommand that the first word names. Raises BadUsage."""
        if not args or args[0] not in self.commands:
            return super().make_context(info_name, args, parent, **extra)
        root = super().make_context(info_name, [], parent, **(extra | {"resilient_parsing": True}))
        return self.commands[args[0]].make_context(args[0], args[1:], parent=root, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run what the context was made for."""
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)
