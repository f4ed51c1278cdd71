"""The command line of `dnsproxy publish-hosts`: from flags and variables to HostsSettings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dnsproxy.dns.names import parse_zone
from dnsproxy.publish.hosts.rules import MOST_NAMES, NO_ZONE, ROOT, Rules, parse_zone_or_root
from dnsproxy.publish.options import make_common, publisher_options
from sidecar.cli.options import CheckedType, Program, run_program

if TYPE_CHECKING:
    from dnsproxy.publish.configmaps.manifests import MapName

EPILOG = """\b
Examples:
  dnsproxy publish-hosts --zone registry.example.org --dry-run
  dnsproxy publish-hosts --zone example.org --from dnsproxy-admin.switchback.svc:8081 --to /host/hosts
  dnsproxy publish-hosts --to-configmap switchback/node-hosts    (one writer, for nodes that cannot reach dnsproxy)
  dnsproxy publish-hosts --from-file /etc/node-hosts --to /host/hosts --zone example.org
  dnsproxy publish-hosts --remove
"""


def parse_map_name(text: str) -> MapName:
    """`NAMESPACE/NAME`. Raises ValueError."""
    from dnsproxy.cluster_dns.options import parse_object_ref  # noqa: PLC0415  # --help must not cost its imports
    from dnsproxy.publish.configmaps.manifests import MapName  # noqa: PLC0415

    ref = parse_object_ref(text)
    return MapName(ref.namespace, ref.name)


@click.command("publish-hosts", cls=Program, epilog=EPILOG)
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    default="/etc/hosts",
    help="The hosts file to keep a block in. Everything outside the block stays as it is, and names there win.",
)
@click.option(
    "--to-configmap",
    type=CheckedType("ns/name", parse_map_name),
    help="Keep the table in this ConfigMap instead, for publishers that mount it and read it with --from-file.",
)
@click.option("--force", is_flag=True, help="Accept a file for --to whose name is not `hosts`.")
@click.option(
    "--zone",
    type=CheckedType("zone", parse_zone_or_root),
    multiple=True,
    help="Publish only names at or below this one. A hosts file requires it; `--zone .` for all names.",
)
@click.option(
    "--allow",
    type=CheckedType("name", parse_zone),
    multiple=True,
    help="Accept exactly this name of an API server, a public registry or a cloud, which is otherwise refused.",
)
@click.option(
    "--deny", type=CheckedType("name", parse_zone), multiple=True, help="Never write this name or a name below it."
)
@click.option(
    "--max-names",
    type=click.IntRange(1, 1_000_000),
    default=MOST_NAMES,
    help="Write no more names than this into a hosts file; names that are in it already go first.",
)
@publisher_options
def publish_hosts(log_format: str | None, log_level: str, **values: Any) -> None:
    """Keep the names of a running server in a hosts file, for programs that never ask the cluster's DNS.

    Exit status: 0 done, 1 the file is refused or the node has replaced it, 2 bad usage, 3 the table or the cluster is
    out of reach.
    """
    from dnsproxy.publish.hosts.program import run_publish_hosts  # noqa: PLC0415  # --help must not cost its imports
    from dnsproxy.publish.settings import HostsSettings  # noqa: PLC0415
    from sidecar.cli.logs import configure_logging  # noqa: PLC0415

    is_file = not values["to_configmap"]
    faults = []
    if is_file and not values["zone"] and not values["remove"]:
        faults.append(NO_ZONE)
    if not is_file and values["dry_run"]:
        faults.append("--dry-run previews a hosts file; --to-configmap has none")
    if not is_file and (values["allow"] or values["deny"]):
        faults.append("--allow and --deny are for a hosts file; --to-configmap has none")
    zones, allow, deny = (frozenset(values[name]) for name in ("zone", "allow", "deny"))
    rules = Rules(zones, allow=allow, deny=deny, most=values["max_names"])
    # The root is the zone of all names, which a ConfigMap has without zones.
    common = make_common({**values, "zone": () if ROOT in zones else values["zone"]}, faults)
    settings = HostsSettings(common, values["to_configmap"] or values["to"], rules, force=values["force"])
    program = "dnsproxy publish-hosts" if common.stays else None
    configure_logging(format=log_format, level=log_level, program=program)
    run_program(run_publish_hosts, settings)
