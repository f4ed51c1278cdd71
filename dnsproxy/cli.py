"""The `dnsproxy` command: what there is, each in a module of its own."""

from __future__ import annotations

from importlib.metadata import version

import click

from dnsproxy.demo.command import demo
from dnsproxy.doctor.command import doctor
from dnsproxy.install.command import install, uninstall
from dnsproxy.install.status_command import status
from dnsproxy.publish.externaldns.command import publish_external_dns
from dnsproxy.publish.hosts_command import publish_hosts
from dnsproxy.serve_command import serve
from dnsproxy.table_command import explain, table
from sidecar.options import Group

EPILOG = """\b
Examples:
  dnsproxy demo                  the whole story on this computer
  dnsproxy serve --host app.example.org=192.0.2.10
  dnsproxy explain app.example.org
  dnsproxy install --file Corefile --address 10.96.0.53
  dnsproxy status
  dnsproxy doctor app.example.org
"""


@click.group(cls=Group, epilog=EPILOG, context_settings={"auto_envvar_prefix": "DNSPROXY"})
@click.version_option(version("switchback"), prog_name="dnsproxy", allow_from_autoenv=False)
def main() -> None:
    """Let pods reach their own cluster's public hostnames."""


for _command in (
    demo,
    doctor,
    serve,
    table,
    explain,
    install,
    uninstall,
    status,
    publish_hosts,
    publish_external_dns,
):
    main.add_command(_command)
