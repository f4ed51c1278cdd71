"""NSD as a secondary of our policy zone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.kit.processes import is_listening
from tests.kit.programs import program
from tests.kit.rpz.page import adapted, blocks
from tests.kit.rpz.resolver import Resolver, Site, started


@contextmanager
def running_nsd_secondary(site: Site) -> Iterator[Resolver]:
    """NSD in the foreground, on the port of the site's helper."""
    (block,) = blocks("NSD")
    zone = adapted(block, primary=f"127.0.0.1@{site.primary}", secret=site.secret)
    zone = zone.replace("127.0.0.1@53", f"127.0.0.1@{site.port}")
    (site.folder / "nsd.conf").write_text(
        f"""server:
  server-count: 1
  ip-address: 127.0.0.1@{site.helper}
  zonesdir: "{site.folder}"
  xfrdir: "{site.folder}"
  xfrdfile: "{site.folder}/xfrd.state"
  zonelistfile: "{site.folder}/zone.list"
  pidfile: ""
  username: ""
  chroot: ""
  database: ""
  verbosity: 2
remote-control:
  control-enable: no
{zone}""",
        encoding="utf-8",
    )
    log = site.folder / "nsd.log"
    command = [program("nsd"), "-d", "-c", str(site.folder / "nsd.conf")]
    with started(command, folder=site.folder, log=log, ready=lambda: is_listening(site.helper)):
        yield Resolver(site.helper, log)
