"""The `dnsproxy` command: its subcommands, each in a module of its own that is imported when it is called."""

from __future__ import annotations

import sys
from pathlib import PurePath
from types import MappingProxyType
from typing import Final

import click

from sidecar.cli.completion import complete_for_kubectl, completion_command
from sidecar.cli.deferred_modules import defer_unused_modules
from sidecar.cli.lazy_commands import LazyCommands
from sidecar.cli.usage import Group
from sidecar.values.build import DISTRIBUTION

# Before a command imports the libraries.
defer_unused_modules()

COMMANDS: Final = MappingProxyType(
    {
        "completion": "dnsproxy.cli:completion",
        "demo": "dnsproxy.demo.command:demo",
        "doctor": "dnsproxy.doctor.command:doctor",
        "explain": "dnsproxy.admin.table_command:explain",
        "install": "dnsproxy.install.command:install",
        "ip-mode": "dnsproxy.ip_mode.command:ip_mode",
        "operate": "dnsproxy.operate.command:operate",
        "publish-external-dns": "dnsproxy.publish.externaldns.command:publish_external_dns",
        "publish-hosts": "dnsproxy.publish.hosts.command:publish_hosts",
        "serve": "dnsproxy.serve.command:serve",
        "status": "dnsproxy.install.status_command:status",
        "table": "dnsproxy.admin.table_command:table",
        "tap": "dnsproxy.tap_command.command:tap",
        "uninstall": "dnsproxy.install.command:uninstall",
    }
)
"""The module and the function of each subcommand."""

PLUGIN: Final = "kubectl switchback"
"""How a person calls the entry point kubectl-switchback, which kubectl finds on the PATH."""
COMPLETER: Final = "kubectl_complete-switchback"
"""The executable that kubectl asks for the words after `kubectl switchback`."""
completion: Final = completion_command("dnsproxy")

EPILOG = """\b
Examples:
  dnsproxy demo                  the whole story on this computer
  dnsproxy serve --host app.example.org=192.0.2.10
  dnsproxy explain app.example.org
  dnsproxy tap app.example.org
  dnsproxy install --file Corefile --address 10.96.0.53
  dnsproxy status
  dnsproxy doctor app.example.org
"""


@click.group(
    "dnsproxy",
    cls=Group,
    commands=LazyCommands(COMMANDS),
    epilog=EPILOG,
    context_settings={"auto_envvar_prefix": "DNSPROXY"},
)
@click.version_option(package_name=DISTRIBUTION, allow_from_autoenv=False)
def main() -> None:
    """Let pods reach their own cluster's public hostnames."""


def run_as_called() -> None:
    """The entry point of the file kubectl-switchback, by the name that people type; by another file name, dnsproxy.

    The plugin's archive is this one file, so a link to it is what kubectl asks for words.
    """
    called = PurePath(sys.argv[0]).name
    if called == COMPLETER:
        complete_plugin()
        return
    main(prog_name=PLUGIN if called == PLUGIN.replace(" ", "-") else None)


def complete_plugin() -> None:
    """The entry point `kubectl_complete-switchback`."""
    click.echo(complete_for_kubectl(main, sys.argv[1:]), nl=False)
