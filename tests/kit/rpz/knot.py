"""Knot DNS as a secondary, and Knot Resolver, which reads the zone file that Knot DNS writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.kit.polling import poll_until
from tests.kit.programs import program
from tests.kit.rpz.page import adapted, blocks
from tests.kit.rpz.resolver import Resolver, Site, resolving, short_folder, started

_FOLDER = "/var/lib/knot"
_SHOWN_PORT = "198.51.100.53@5353"
_BEHIND = "127.0.0.1@53"
"""A resolver that loads the zone from Knot DNS."""


@contextmanager
def running_knot_dns(site: Site, *, heading: str = "Knot DNS") -> Iterator[Resolver]:
    """Knot DNS in the foreground, on the port of the site's helper."""
    block = blocks(heading)[0]
    zone = adapted(
        block, primary=f"127.0.0.1@{site.primary}", secret=site.secret, folders=(_FOLDER,), folder=site.folder
    )
    where = f"127.0.0.1@{site.helper}"
    server = f"server:\n  listen: {where}\n"
    zone = zone.replace(_SHOWN_PORT, where)
    zone = zone.replace(_BEHIND, f"127.0.0.1@{site.port}")
    with short_folder() as sockets:
        rundir = f"  rundir: {sockets}\n"
        conf = zone.replace(server, server + rundir) if server in zone else server + rundir + zone
        conf += f"database:\n  storage: {site.folder}\nlog:\n  - target: stderr\n    any: info\n"
        (site.folder / "knot.conf").write_text(conf, encoding="utf-8")
        log = site.folder / "knotd.log"
        ready = f"binding to interface {where}"
        with started(
            [program("knotd"), "-c", str(site.folder / "knot.conf")],
            folder=site.folder,
            log=log,
            ready=lambda: ready in log.read_text(),
        ):
            yield Resolver(site.helper, log)


@contextmanager
def running_knot_resolver(site: Site) -> Iterator[Resolver]:
    """Knot DNS, and kresd in the foreground as soon as there is a zone file."""
    _, policy = blocks("Knot Resolver")
    zone_file = site.folder / "rpz.example.org.zone"
    with running_knot_dns(site, heading="Knot Resolver"):
        poll_until(zone_file.exists, "Knot DNS has the zone", seconds=60)
        anchor = f"trust_anchors.add('example.org. DNSKEY {site.trusted}')" if site.trusted else ""
        (site.folder / "kresd.conf").write_text(
            f"""net.listen('127.0.0.1', {site.port}, {{ kind = 'dns' }})
trust_anchors.remove('.')
{anchor}
modules = {{ 'policy' }}
log_groups({{ 'policy' }})
cache.open(10 * MB, 'lmdb://{site.folder}/cache')
{policy.replace(_FOLDER, str(site.folder))}
policy.add(policy.all(policy.FORWARD('127.0.0.1@{site.upstream}')))
""",
            encoding="utf-8",
        )
        (site.folder / "cache").mkdir(exist_ok=True)
        command = [program("kresd"), "-n", "-c", str(site.folder / "kresd.conf"), str(site.folder)]
        with resolving(command, site) as one:
            yield one
