"""How each server is told what a zone holds: the command and the files it reads. Pure text.

The law: as many processes or threads that answer as the site says, mostly one; no cache, no rate limit, no log of
queries, the shortest answers there are.
A peer that is set up worse than its author would do it proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.bench.dns.workloads import Zone
from tests.kit.launched import ROOT

TTL: Final = 5
OPEN_FORWARDS: Final = 10_000
REWRITE_ADDRESS: Final = "192.0.2.254"
_REWRITE_TARGET: Final = "target.example.org"


@dataclass(frozen=True, slots=True)
class Site:
    """Where a server is to run and what it is to know."""

    program: str
    folder: Path
    port: int
    zone: Zone
    upstream: int | None = None
    """The port that knows the names of a forwarded zone, on loopback."""
    workers: int = 1
    """How many processes or threads answer."""
    admin: int | None = None
    """The port of its listener, on loopback."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What starts a server: its command, run in the site's folder, and the files there."""

    command: tuple[str, ...]
    files: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)


def format_hosts(zone: Zone, *, wildcard: bool = False) -> str:
    """A hosts file (hosts(5)); `wildcard` adds a line as only we read it."""
    rows = [f"{address} {name}" for name, address in zone.hosts]
    if wildcard and zone.wildcard:
        parent, address = zone.wildcard
        rows.append(f"{address} *.{parent}")
    return _lines(rows)


def format_zone_file(zone: Zone) -> str:
    """A master file (RFC 1035 section 5) of example.org."""
    rows = [f"$TTL {TTL}", "@ IN SOA ns hostmaster 1 3600 600 86400 5", "@ IN NS ns", "ns IN A 192.0.2.53"]
    rows += [f"{name}. IN A {address}" for name, address in zone.hosts]
    if zone.wildcard:
        parent, address = zone.wildcard
        rows.append(f"*.{parent}. IN A {address}")
    return _lines(rows)


def setup_ours(site: Site) -> Setup:
    """The command that users run. Where it forwards, its table is as full as ever."""
    zone = site.zone
    own = Zone(zone.name, tuple((f"own-{name}", address) for name, address in zone.hosts[:10_000]))
    hosts = format_hosts(own if zone.forwarded else zone, wildcard=True)
    command = (site.program, "-m", "dnsproxy", "serve", "--listen", f"127.0.0.1:{site.port}", "--hosts-file", "hosts")
    # Without one it would read this computer's resolv.conf; the discard port answers nothing.
    options = ("--upstream", f"127.0.0.1:{site.upstream or 9}")
    admin = ("--admin", f"127.0.0.1:{site.admin}" if site.admin else "off")
    workers = ("--workers", str(site.workers)) if site.workers > 1 else ()
    return Setup((*command, *options, *admin, *workers), {"hosts": hosts}, {"PYTHONPATH": str(ROOT)})


def setup_limit(site: Site) -> Setup:
    """The C program in tests/bench/limit, which makes our system calls."""
    return Setup((site.program, str(site.port), "hosts"), {"hosts": format_hosts(site.zone)})


def setup_nsd(site: Site) -> Setup:
    """NSD with as many server processes as are to answer, each with sockets of its own."""
    rows = [
        "server:",
        f"  server-count: {site.workers}",
        *(["  reuseport: yes"] if site.workers > 1 else []),
        f"  ip-address: 127.0.0.1@{site.port}",
        f'  zonesdir: "{site.folder}"',
        f'  xfrdir: "{site.folder}"',
        f'  xfrdfile: "{site.folder}/xfrd.state"',
        f'  zonelistfile: "{site.folder}/zone.list"',
        f'  pidfile: "{site.folder}/nsd.pid"',
        *('  username: ""', '  chroot: ""', '  database: ""', "  verbosity: 0"),
        *("  minimal-responses: yes", "  hide-version: yes", "  rrl-ratelimit: 0"),
        *("remote-control:", "  control-enable: no"),
        *("zone:", "  name: example.org", "  zonefile: example.org.zone"),
    ]
    files = {"nsd.conf": _lines(rows), "example.org.zone": format_zone_file(site.zone)}
    return Setup((site.program, "-d", "-c", "nsd.conf"), files)


def setup_dnsmasq(site: Site) -> Setup:
    """Dnsmasq without its cache; it answers and forwards in one thread anyway."""
    zone = site.zone
    rows = [
        *("no-hosts", "no-resolv", "no-poll", "bind-interfaces", "cache-size=0", f"local-ttl={TTL}"),
        *("listen-address=127.0.0.1", f"port={site.port}", "user=", "group=", "pid-file="),
        f"dns-forward-max={OPEN_FORWARDS}",
    ]
    if zone.forwarded:
        rows.append(f"server=127.0.0.1#{site.upstream}")
    else:
        rows.append(f"addn-hosts={site.folder}/hosts")
    if zone.wildcard:
        rows.append("address=/{}/{}".format(*zone.wildcard))
    files = {"dnsmasq.conf": _lines(rows), "hosts": "" if zone.forwarded else format_hosts(zone)}
    return Setup((site.program, "--keep-in-foreground", "--conf-file=dnsmasq.conf"), files)


def setup_unbound(site: Site) -> Setup:
    """Unbound with as many threads as are to answer, without validation, and without keeping what it forwards."""
    rows = [
        "server:",
        *(
            f"  num-threads: {site.workers}",
            f"  port: {site.port}",
            "  interface: 127.0.0.1",
            "  access-control: 127.0.0.0/8 allow",
        ),
        *('  username: ""', '  chroot: ""', '  pidfile: ""', f'  directory: "{site.folder}"', "  use-syslog: no"),
        *("  verbosity: 0", '  module-config: "iterator"', "  do-not-query-localhost: no", "  minimal-responses: yes"),
        *("  outgoing-range: 4096", "  num-queries-per-thread: 4096", "  so-rcvbuf: 4m", "  qname-minimisation: no"),
        *(_forward_rows(site) if site.zone.forwarded else _local_rows(site.zone)),
        *("remote-control:", "  control-enable: no"),
    ]
    return Setup((site.program, "-d", "-p", "-c", "unbound.conf"), {"unbound.conf": _lines(rows)})


def _local_rows(zone: Zone) -> list[str]:
    rows = ["  local-zone: example.org. static"]
    rows += [f'  local-data: "{name}. {TTL} IN A {address}"' for name, address in zone.hosts]
    if zone.wildcard:
        parent, address = zone.wildcard
        rows += [f"  local-zone: {parent}. redirect", f'  local-data: "{parent}. {TTL} IN A {address}"']
    return rows


def _forward_rows(site: Site) -> list[str]:
    return ["forward-zone:", "  name: .", f"  forward-addr: 127.0.0.1@{site.upstream}", "  forward-no-cache: yes"]


def setup_coredns_hosts(site: Site) -> Setup:
    """CoreDNS with its `hosts` plugin."""
    plugin = ["hosts hosts {", f"  ttl {TTL}", "  reload 0", "}"]
    return _setup_coredns(site, plugin, {"hosts": format_hosts(site.zone)})


def setup_coredns_file(site: Site) -> Setup:
    """CoreDNS with its `file` plugin: `hosts` knows no wildcards, and `template` is the slower of the two that do."""
    plugin = ["file example.org.zone example.org {", "  reload 0", "}"]
    return _setup_coredns(site, plugin, {"example.org.zone": format_zone_file(site.zone)})


def setup_coredns_rewrite(site: Site) -> Setup:
    """CoreDNS with a `rewrite` line per name: what tools that write Corefiles leave behind."""
    plugins = [f"rewrite name exact {name} {_REWRITE_TARGET}" for name, _ in site.zone.hosts]
    plugins += ["hosts {", f"  {REWRITE_ADDRESS} {_REWRITE_TARGET}", f"  ttl {TTL}", "  reload 0", "}"]
    return _setup_coredns(site, plugins, {})


def setup_coredns_forward(site: Site) -> Setup:
    """CoreDNS with its `forward` plugin; its health checks stay as they are by default."""
    return _setup_coredns(site, [f"forward . 127.0.0.1:{site.upstream}"], {})


def _setup_coredns(site: Site, plugins: Iterable[str], files: Mapping[str, str]) -> Setup:
    several = [f"multisocket {site.workers}"] if site.workers > 1 else []
    rows = [f".:{site.port} {{", *(f"  {row}" for row in ("bind 127.0.0.1", *several, *plugins)), "}"]
    command = (site.program, "-conf", "Corefile", "-quiet")
    return Setup(command, {**files, "Corefile": _lines(rows)}, {"GOMAXPROCS": str(site.workers)})


def _lines(rows: Iterable[str]) -> str:
    return "".join(f"{row}\n" for row in rows)
