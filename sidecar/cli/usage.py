"""Commands that report all errors of a command line at once: click with the rules that all programs share.

The law: every flag has an environment variable PREFIX_FLAG, an empty variable counts as unset, and all bad values are
reported together, one line each that names flag and variable, with exit status 2. The prefix is set once, at the root
command (`context_settings={"auto_envvar_prefix": "DNSPROXY"}`); its subcommands inherit it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from sidecar.cli.stray_signals import survive_stray_signals
from sidecar.values.errors import StartError
from sidecar.values.text import colour_choice, one_line

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
"""A command, or a function that becomes one."""
_FAULTS: Final = f"{__name__}.faults"


class BadUsage(click.UsageError):
    """One or more errors of a command line, each shown as one line."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(map(one_line, faults))

    def show(self, file: Any = None) -> None:
        """Write the lines; click calls this before it exits."""
        for fault in self.faults:
            click.echo(f"Error: {fault}", file=file, err=file is None)


class _Reporting(click.Command):
    """The common part of Command and Group: collected errors, an inherited prefix, errors as plain lines."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        defaults = {"show_default": True, "help_option_names": ["-h", "--help"], "max_content_width": 110}
        self.context_settings = {**defaults, **self.context_settings}
        for param in self.params:
            _make_collecting(param)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the arguments. Raises BadUsage with all errors."""
        if parent is None:
            extra.setdefault("color", colour_choice(os.environ))
        elif parent.auto_envvar_prefix and "auto_envvar_prefix" not in self.context_settings:
            # click would add the name of the command: DNSPROXY_SERVE_TTL.
            extra.setdefault("auto_envvar_prefix", parent.auto_envvar_prefix)
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            raise _as_bad_usage(error) from None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse all arguments before any error is reported."""
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        faults: list[str] = []
        args = self._without_unknown_flags(ctx, args, faults)
        ctx.meta[_FAULTS] = faults
        rest = super().parse_args(ctx, args)
        if faults:
            raise BadUsage(faults)
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; its usage and start errors become plain lines too."""
        try:
            return super().invoke(ctx)
        except StartError as error:
            click.echo(f"Error: {one_line(str(error))}", err=True)
            ctx.exit(error.status)
        except click.UsageError as error:
            raise _as_bad_usage(error) from None

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples; a plugin of another program (`kubectl switchback`) has its own name in them."""
        spoken, program = ctx.find_root().info_name or "", (ctx.auto_envvar_prefix or "").lower()
        shown = copy(self)
        if self.epilog and " " in spoken and program:
            shown.epilog = self.epilog.replace(f"\n  {program} ", f"\n  {spoken} ")
        super(_Reporting, shown).format_epilog(ctx, formatter)

    def _without_unknown_flags(self, ctx: click.Context, args: list[str], faults: list[str]) -> list[str]:
        """The parser stops at the first unknown flag; without the flag it checks the other values as well."""
        args = list(args)
        while True:
            try:
                self.make_parser(ctx).parse_args(list(args))
            except click.NoSuchOption as error:
                faults.append(_line(error))
                kept = [arg for arg in args if arg.split("=", 1)[0] != error.option_name]
                if len(kept) == len(args):  # one letter of a cluster such as -xq
                    raise BadUsage(faults) from None
                # The argument after an unknown flag may have been its value, so it is not an error by itself.
                ctx.allow_extra_args = True
                args = kept
            else:
                return args


class Command(_Reporting):
    """A command that reports all bad values together."""


class Program(Command):
    """A command that runs until SIGTERM or SIGINT; stray signals do not end it while it starts either."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """See Command."""
        if not extra.get("resilient_parsing"):
            survive_stray_signals()
        return super().make_context(info_name, args, parent, **extra)


class Group(_Reporting, click.Group):
    """A group of such commands; `@group.command()` makes them."""

    command_class = Command
    group_class = type


class _Collecting(click.Parameter):
    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        try:
            return super().handle_parse_result(ctx, opts, args)
        except click.UsageError as error:
            if ctx.resilient_parsing:
                raise
            named = _name(self, ctx)
            lines = error.faults if isinstance(error, BadUsage) else [_fault(error)]
            ctx.meta[_FAULTS].extend(f"{named}: {line}" for line in lines)
            return None, args

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        if not (self.multiple and self.nargs == 1 and isinstance(value, (list, tuple))):
            return super().type_cast_value(ctx, value)
        faults: list[str] = []
        values: list[Any] = []
        for item in value:
            try:
                values.append(self.type(item, param=self, ctx=ctx))
            except click.BadParameter as error:
                faults.append(error.message)
        if faults:
            raise BadUsage(faults)
        return tuple(values)


class _Option(_Collecting, click.Option):
    pass


class _Argument(_Collecting, click.Argument):
    pass


class GatheringOption(_Option):
    """A repeatable option whose variable PREFIX_FLAG has others beside it: each PREFIX_FLAG_WORD adds its values.

    So two manifests can each add a value without knowing of the other. The variable of another flag is never one of
    them, whatever that flag is called.
    """

    def variables(self, ctx: click.Context) -> dict[str, str]:
        """The variables that are set and not empty, the plain one first, then in alphabetical order."""
        own = _variable(self, ctx)
        others = {_variable(one, ctx) for one in ctx.command.params if isinstance(one, click.Option)} - {own}
        named = (key for key in os.environ if key == own or key.startswith(f"{own}_"))
        return {key: os.environ[key] for key in sorted(named) if os.environ[key].strip() and key not in others}

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """The values of all the variables."""
        return " ".join(self.variables(ctx).values()) or None


def _make_collecting(param: click.Parameter) -> None:
    """Parameters are declared with click.option and click.argument; subclasses of theirs are left alone."""
    if type(param) is click.Option:
        param.__class__ = _Option
        param.show_envvar = True
    elif type(param) is GatheringOption:
        param.show_envvar = True
    elif type(param) is click.Argument:
        param.__class__ = _Argument


def _name(param: click.Parameter, ctx: click.Context) -> str:
    if not isinstance(param, click.Option):
        return param.make_metavar(ctx)
    flag = max(param.opts, key=len)
    if ctx.get_parameter_source(param.name or "") is not ParameterSource.ENVIRONMENT:
        return flag
    variables = param.variables(ctx) if isinstance(param, GatheringOption) else (_variable(param, ctx),)
    return f"{flag} (from {', '.join(variables)})"


def _variable(param: click.Option, ctx: click.Context) -> str:
    if isinstance(param.envvar, str):
        return param.envvar
    return f"{ctx.auto_envvar_prefix}_{(param.name or '').upper()}"


def _fault(error: click.UsageError) -> str:
    return f"is required{_help_of(error)}" if isinstance(error, click.MissingParameter) else error.message


def _line(error: click.UsageError) -> str:
    if isinstance(error, click.BadParameter) and error.param is not None and error.ctx is not None:
        return f"{_name(error.param, error.ctx)}: {_fault(error)}"
    if not getattr(error, "possibilities", True):  # only an unknown flag or command has them, for a "Did you mean"
        return f"{error.message.removesuffix('.')}{_help_of(error)}"
    return error.format_message()


def _help_of(error: click.UsageError) -> str:
    """Where the right words are, by the name that was typed."""
    return f"; see {error.ctx.command_path} --help" if error.ctx else ""


def _as_bad_usage(error: click.UsageError) -> BadUsage:
    return error if isinstance(error, BadUsage) else BadUsage([_line(error)])
