"""How the servers beside ours are told of their zone and of 2,000 secondaries. Pure text.

The law: one process or thread that answers, all limits far above the load, no delay before NOTIFY: as their authors
would set up a primary with so many secondaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.bench.fleet.addresses import PORT, PRIMARY

ZONE_FILE = "zone"


def bind_files(folder: Path, zone: str, *, port: int, secondaries: Sequence[str]) -> dict[str, str]:
    """BIND, whose zone changes by dynamic updates (RFC 2136), so that each is a step of its journal."""
    notified = "".join(f"    {address} port {PORT};\n" for address in secondaries)
    many = max(100, 3 * len(secondaries))
    named = f"""
options {{
  directory "{folder}";
  listen-on port {port} {{ {PRIMARY}; }};
  listen-on-v6 {{ none; }};
  pid-file none;
  session-keyfile none;
  recursion no;
  minimal-responses yes;
  dnssec-validation no;
  notify explicit;
  notify-delay 0;
  notify-rate 20000;
  startup-notify-rate 20000;
  transfers-out {many};
  tcp-clients {many};
  tcp-listen-queue 4096;
  max-transfer-time-out 600;
}};
controls {{ }};
logging {{ category default {{ default_stderr; }}; category notify {{ null; }}; category xfer-out {{ null; }};
  category update {{ null; }}; category client {{ null; }}; }};
zone "{zone}" {{
  type primary;
  file "{ZONE_FILE}";
  allow-transfer {{ 127.0.0.0/8; }};
  allow-update {{ 127.0.0.1; }};
  also-notify {{
{notified}  }};
}};
"""
    return {"named.conf": named}


def nsd_files(folder: Path, zone: str, *, port: int, secondaries: Sequence[str]) -> dict[str, str]:
    """NSD, whose zone changes by a new file and SIGHUP; it keeps what changed for IXFR."""
    many = max(100, 3 * len(secondaries))
    rows = [
        "server:",
        "  server-count: 1",
        f"  ip-address: {PRIMARY}@{port}",
        f'  zonesdir: "{folder}"',
        f'  xfrdir: "{folder}"',
        f'  xfrdfile: "{folder}/xfrd.state"',
        f'  zonelistfile: "{folder}/zone.list"',
        f'  pidfile: "{folder}/nsd.pid"',
        *('  username: ""', '  chroot: ""', '  database: ""', "  verbosity: 0", "  rrl-ratelimit: 0"),
        *(f"  tcp-count: {many}", "  tcp-timeout: 120", "  minimal-responses: yes", "  hide-version: yes"),
        *("remote-control:", "  control-enable: no"),
        *("zone:", f"  name: {zone}", f"  zonefile: {ZONE_FILE}"),
        *("  provide-xfr: 127.0.0.0/8 NOKEY", "  store-ixfr: yes", "  create-ixfr: yes"),
        *(f"  notify: {address}@{PORT} NOKEY" for address in secondaries),
    ]
    return {"nsd.conf": "".join(f"{row}\n" for row in rows)}
