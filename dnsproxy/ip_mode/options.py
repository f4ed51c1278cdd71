"""The flags of `dnsproxy ip-mode`, and which of them belong together.

The law: one mode at a time, and a flag that its mode does not read is refused by name, before anything is asked.
"""

from __future__ import annotations

from typing import Final

import click

from dnsproxy.cluster_dns.options import OBJECT_REF, is_given, output_option
from dnsproxy.ip_mode.watch_options import FLAGS
from sidecar.cli.options import BadUsage, Decorated, Seconds, add_options

MODES: Final = ("apply", "remove", "check", "watch")
"""The names of the flags that are modes; without one of them the policy is printed."""
_PRINT: Final = ""
_MODES_OF: Final = {
    "classes": (_PRINT, "apply"),
    "api_version": (_PRINT,),
    "services": ("apply", "remove", "check", "watch"),
    "rewrite": ("apply", "remove"),
    "dry_run": ("apply", "remove"),
    "balancer_ends_connections": ("apply", "check", "watch"),
    "output": ("apply", "remove", "check"),
    "host": ("check",),
    "seconds": ("check",),
    "trial": ("check",),
    "yes": ("check",),
    **dict.fromkeys(FLAGS, ("watch",)),
}
"""The modes that read a flag. A flag that is not here is for all of them."""


def mode_options(command: Decorated) -> Decorated:
    """The modes, and the flags that several of them have: `services`, `rewrite`, `dry_run`, `output`."""
    return add_options(
        command,
        click.option("--apply", is_flag=True, help="Write the policy and its binding to the cluster."),
        click.option("--remove", is_flag=True, help="Delete the policy and its binding."),
        click.option(
            "--check", is_flag=True, help="Say whether it would help HOST, with the evidence. Writes nothing."
        ),
        click.option(
            "--seconds",
            type=Seconds(),
            default=0.0,
            help="With --check, watch the Services for so long and count the writes of their statuses.",
        ),
        click.option(
            "--trial",
            is_flag=True,
            help="With --check in a pod: write ipMode Proxy into the status of the one Service, dial it until it "
            "answers or 30 s are over, and restore the status.",
        ),
        click.option("--yes", is_flag=True, help="With --trial, do not ask before the status is written."),
        click.option(
            "--service",
            "services",
            type=OBJECT_REF,
            multiple=True,
            help="Select this Service: --apply writes the annotation, --remove removes it, --check looks at it alone, "
            "--watch writes its status. Repeatable.",
        ),
        click.option(
            "--balancer-ends-connections",
            is_flag=True,
            help="You know that the load balancers of --service end the TCP connection, as all that send the PROXY "
            "header do. With one that passes packets on, connections from outside are lost.",
        ),
        click.option(
            "--rewrite",
            is_flag=True,
            help="Also write the statuses of the selected Services anew: Proxy with --apply, VIP with --remove.  "
            "[default: they change with the provider's next write]",
        ),
        click.option("--dry-run", is_flag=True, help="Write nothing; show a unified diff, and the RBAC that it takes."),
        output_option,
    )


def chosen_mode(ctx: click.Context) -> str:
    """The mode of a command line, empty to print. Raises BadUsage with a line for each contradiction."""
    modes = [param for param in ctx.command.params if param.name in MODES and ctx.params[param.name]]
    if len(modes) > 1:
        raise BadUsage([f"{', '.join(map(_flag, modes))}: one of them at a time"])
    mode = (modes[0].name if modes else None) or _PRINT
    useless = [
        param
        for param in ctx.command.params
        if is_given(ctx, param) and mode not in _MODES_OF.get(param.name or "", (mode,))
    ]
    if useless:
        raise BadUsage([f"{_flag(param)}: {_purpose(param)}" for param in useless])
    return mode


def _flag(param: click.Parameter) -> str:
    return max(param.opts, key=len)


def _purpose(param: click.Parameter) -> str:
    modes = [f"--{mode}" for mode in _MODES_OF[param.name or ""] if mode != _PRINT]
    if not modes:
        return "is for printing the policy only"
    named = " or ".join(filter(None, (", ".join(modes[:-1]), modes[-1])))
    return f"is for {named} only"
