"""PowerDNS Recursor with our policy zone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dns.dnssec
import dns.rdata

from tests.kit.programs import program
from tests.kit.rpz.page import adapted, blocks
from tests.kit.rpz.resolver import Resolver, Site, resolving, short_folder

_FOLDERS = ("/var/lib/powerdns", "/etc/powerdns")


@contextmanager
def running_powerdns(site: Site) -> Iterator[Resolver]:
    """The recursor in the foreground."""
    conf, script = (
        adapted(block, primary=f"127.0.0.1:{site.primary}", secret=site.secret, folders=_FOLDERS, folder=site.folder)
        for block in blocks("PowerDNS Recursor")
    )
    if site.trusted:
        key = dns.rdata.from_text("IN", "DNSKEY", site.trusted)
        script += f'addTA("example.org", "{dns.dnssec.make_ds("example.org.", key, "SHA256")}")\n'
    (site.folder / "recursor.lua").write_text(script, encoding="utf-8")
    (site.folder / "recursor.conf").write_text(
        f"""local-address=127.0.0.1
local-port={site.port}
config-dir={site.folder}
daemon=no
disable-syslog=yes
dnssec={"validate" if site.trusted else "off"}
security-poll-suffix=
hint-file=no
export-etc-hosts=no
threads=1
forward-zones-recurse=.=127.0.0.1:{site.upstream}
loglevel=6
{conf}""",
        encoding="utf-8",
    )
    with short_folder() as sockets:
        command = [program("pdns_recursor"), f"--config-dir={site.folder}", f"--socket-dir={sockets}"]
        with resolving(command, site) as one:
            yield one
