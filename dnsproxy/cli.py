"""The `dnsproxy` command: its subcommands, each in a module of its own that is imported when it is called."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

import click

from sidecar.cli.lazy_commands import LazyCommands
from sidecar.cli.usage import Group

COMMANDS: Final = MappingProxyType(
    {
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
        "uninstall": "dnsproxy.install.command:uninstall",
    }
)
"""The module and the function of each subcommand."""

EPILOG = """\b
Examples:
  dnsproxy demo                  the whole story on this computer
  dnsproxy serve --host app.example.org=192.0.2.10
  dnsproxy explain app.example.org
  dnsproxy install --file Corefile --address 10.96.0.53
  dnsproxy status
  dnsproxy doctor app.example.org
"""


@click.group(
    cls=Group, commands=LazyCommands(COMMANDS), epilog=EPILOG, context_settings={"auto_envvar_prefix": "DNSPROXY"}
)
@click.version_option(package_name="switchback", prog_name="dnsproxy", allow_from_autoenv=False)
def main() -> None:
    """Let pods reach their own cluster's public hostnames."""
