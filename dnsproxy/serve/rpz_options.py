"""The flags of a primary and of a replica: `--rpz` and those beside it, and `--source rpz:`.

The law: every mistake is reported here, in one line that names the flag.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import click

from dnsproxy.cluster_dns.options import parse_object_ref
from dnsproxy.dns.names import parse_zone, to_wire
from dnsproxy.dns.wire import DNS_PORT
from dnsproxy.hostnames.rights import parse_network
from dnsproxy.hostnames.targets import SERVICE
from dnsproxy.primary.settings import LEASE, LOOPBACK, LeaseRef, Network, NotifyTarget, RpzSettings, ServiceEndpoints
from dnsproxy.replica.settings import ReplicaSettings
from dnsproxy.secondary.source import PREFIX, RpzSource, parse_rpz_source
from dnsproxy.sources.names import parse_source_name
from dnsproxy.zone.policy import Triggers, Wildcards
from dnsproxy.zone.table_zone import table_zone
from dnsproxy.zone.tsig_keys import BadKeys, TsigKey, parse_keys
from sidecar.cli.options import CheckedType, add_options
from sidecar.cli.usage import Decorated
from sidecar.values.endpoints import Endpoint, parse_endpoint
from sidecar.values.errors import StartError
from sidecar.values.text import quoted

_LARGEST_FILE: Final = 1 << 20


def parse_notify(text: str) -> NotifyTarget:
    """`ADDR[:PORT]`, or `service:NAMESPACE/NAME`. Raises ValueError."""
    if text.strip().startswith(SERVICE):
        return ServiceEndpoints(parse_object_ref(text.strip().removeprefix(SERVICE)))
    return parse_endpoint(text, default_port=DNS_PORT)


def parse_serial_place(text: str) -> Path | LeaseRef:
    """A file, or `lease:NAMESPACE/NAME`. Raises ValueError."""
    if text.startswith(LEASE):
        return LeaseRef(parse_object_ref(text.removeprefix(LEASE)))
    if not text:
        raise ValueError(f"{quoted(text)} is neither a file nor {LEASE}NAMESPACE/NAME")
    return Path(text)


def parse_rpz_zone(text: str) -> bytes:
    """The wire name of a policy zone. Raises ValueError."""
    zone = to_wire(parse_zone(text))
    table_zone(zone)
    return zone


_OPTIONS: Final[tuple[Callable[[Any], Any], ...]] = (
    click.option(
        "--rpz",
        type=CheckedType("zone", parse_rpz_zone),
        metavar="ZONE",
        help="Serve the table as this response policy zone, for BIND, Unbound, Knot Resolver, PowerDNS and for "
        "other dnsproxys: AXFR, IXFR and NOTIFY on the ports of --listen.",
    ),
    click.option(
        "--rpz-key",
        # A file without the right to read it gets the same line as every other fault of the file.
        type=click.Path(path_type=Path, readable=False),
        metavar="FILE",
        help="TSIG keys, as `tsig-keygen` prints them. With --rpz: a transfer must be signed by one of them. With "
        "--source rpz: the first one signs the requests.",
    ),
    click.option(
        "--rpz-allow",
        type=CheckedType("network", parse_network),
        metavar="NETWORK",
        multiple=True,
        help="Let clients of this network transfer the zone.  [default: this host's loopback]",
    ),
    click.option(
        "--rpz-allow-unsigned",
        type=CheckedType("network", parse_network),
        metavar="NETWORK",
        multiple=True,
        help="With --rpz-key: let clients of this network transfer the zone without a key, as Unbound does.",
    ),
    click.option(
        "--rpz-notify",
        type=CheckedType("notify", parse_notify),
        metavar="ADDR[:PORT]|service:NS/NAME",
        multiple=True,
        help="Tell this secondary of each change (NOTIFY); service: all endpoints of a headless Service.",
    ),
    click.option(
        "--rpz-wildcards",
        type=click.Choice([one.value for one in Wildcards]),
        default=Wildcards.EXCLUDE.value,
        help="What becomes of a wildcard of one label, as an Ingress has it, which RPZ cannot say: nothing, or a "
        "wildcard of any number of labels.",
    ),
    click.option(
        "--rpz-triggers",
        type=click.Choice([one.value for one in Triggers]),
        default=Triggers.ADDRESSES.value,
        help="What resolvers go by for names that --ownership verify or enforce looks at. addresses: the load "
        "balancers' addresses in the replies that they get, whatever the name; names: the names themselves, for "
        "resolvers without response-IP triggers, such as Knot Resolver.",
    ),
    click.option(
        "--rpz-serial",
        type=CheckedType("file|lease", parse_serial_place),
        metavar="FILE|lease:NS/NAME",
        help="Where to keep the zone's serial over restarts. Two replicas with one Lease share the zone.  [default: "
        "the clock tells it]",
    ),
    click.option(
        "--rpz-address",
        type=CheckedType("endpoint", parse_endpoint),
        metavar="ADDR:PORT",
        help="Where the other replica with the same Lease finds this one.  [default: the first of --listen]",
    ),
)


def rpz_options(command: Decorated) -> Decorated:
    """The command with the flags."""
    return add_options(command, *_OPTIONS)


def parse_source(text: str) -> str | RpzSource:
    """`rpz:ZONE@HOST:PORT`, or a source in a cluster (sources/names.py). Raises ValueError."""
    text = text.strip()
    return parse_rpz_source(text) if text.startswith(PREFIX) else parse_source_name(text)


def make_replica_settings(values: dict[str, Any], keys: tuple[TsigKey, ...]) -> ReplicaSettings | None:
    """The settings of a replica; None without a source `rpz:`. Raises StartError."""
    primaries = tuple(one for one in values["source"] if isinstance(one, RpzSource))
    if not primaries:
        if keys and values["rpz"] is None:
            raise StartError("--rpz-key is for --rpz ZONE and for --source rpz:")
        return None
    if len(primaries) < len(values["source"]):
        raise StartError("--source rpz: brings the whole table; other sources belong to the primary")
    if isinstance(values["rpz_serial"], LeaseRef):
        raise StartError("--rpz-serial lease: is for primaries; with --source rpz: the serials are the primary's")
    if len({one.zone for one in primaries}) > 1:
        raise StartError("--source rpz: all primaries must have one zone")
    for flag in ("host", "hosts_file"):
        if values[flag]:
            raise StartError(f"--{flag.replace('_', '-')}: with --source rpz: static names belong to the primary")
    if values["replace"]:
        raise StartError("--replace: with --source rpz: the primary decides which addresses are replaced")
    for flag in ("deny", "zone", "allow"):
        if values[flag]:
            raise StartError(f"--{flag}: with --source rpz: the primary decides which names are answered")
    return ReplicaSettings(primaries, keys[0] if keys else None)


def make_rpz_settings(values: dict[str, Any], keys: tuple[TsigKey, ...]) -> RpzSettings | None:
    """The settings of a primary; None without --rpz. Raises StartError."""
    if values["rpz"] is None:
        _refuse_without_zone(values)
        return None
    return RpzSettings(
        values["rpz"],
        keys,
        values["rpz_allow"] or LOOPBACK,
        _unsigned_networks(values, keys),
        values["rpz_notify"],
        Wildcards(values["rpz_wildcards"]),
        values["rpz_serial"],
        _shared_address(values),
        values["kubeconfig"],
        values["context"],
        Triggers(values["rpz_triggers"]),
    )


def read_keys(path: Path | None) -> tuple[TsigKey, ...]:
    """The keys of --rpz-key. Raises StartError."""
    if path is None:
        return ()
    try:
        with path.open("rb") as file:
            octets = file.read(_LARGEST_FILE + 1)
        if len(octets) > _LARGEST_FILE:
            raise StartError(f"--rpz-key {path}: it is larger than {_LARGEST_FILE >> 20} MiB")
        return parse_keys(octets.decode("utf-8"))
    except OSError as error:
        raise StartError(f"--rpz-key {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise StartError(f"--rpz-key {path}: it is not UTF-8") from error
    except BadKeys as error:
        raise StartError(f"--rpz-key {path}: {error}") from error


def _shared_address(values: dict[str, Any]) -> Endpoint | None:
    """Where this replica of a shared zone is found. Raises StartError."""
    if not isinstance(values["rpz_serial"], LeaseRef):
        if values["rpz_address"] is not None:
            raise StartError(f"--rpz-address is for --rpz-serial {LEASE}NAMESPACE/NAME")
        return None
    found = values["rpz_address"] or next((one for one in values["listen"] if isinstance(one, Endpoint)), None)
    if found is None or not found.port or ip_address(found.host.partition("%")[0]).is_unspecified:
        raise StartError("--rpz-serial lease: needs --rpz-address ADDR:PORT, where the other replica finds this one")
    return found


def _unsigned_networks(values: dict[str, Any], keys: tuple[TsigKey, ...]) -> tuple[Network, ...]:
    """Raises StartError without keys, where --rpz-allow does the same."""
    unsigned: tuple[Network, ...] = values["rpz_allow_unsigned"]
    if unsigned and not keys:
        raise StartError("--rpz-allow-unsigned is for --rpz-key FILE; without keys --rpz-allow is enough")
    return unsigned


def _refuse_without_zone(values: dict[str, Any]) -> None:
    for flag in ("rpz_allow", "rpz_allow_unsigned", "rpz_notify", "rpz_serial", "rpz_address"):
        if values[flag]:
            raise StartError(f"--{flag.replace('_', '-')} is for --rpz ZONE")
