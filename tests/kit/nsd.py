"""A real NSD on loopback that serves example.org, for the duration of a block."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.bench.dns.configs import Site, setup_nsd
from tests.bench.dns.workloads import Zone
from tests.kit.ports import free_port
from tests.kit.processes import end_process, is_listening, wait_for
from tests.kit.programs import program

NSID = "upstream"
"""Its name server identifier (RFC 5001): only NSD itself can have written this option."""


@contextmanager
def running_nsd(
    folder: Path, records: str, *, addresses: Sequence[str] = (), options: Sequence[str] = ()
) -> Iterator[int]:
    """Its port on loopback, instead of port 53 of the addresses.

    The records are lines below example.org, the options lines of `server:`.
    """
    site = Site(program("nsd"), folder, free_port(), Zone("example.org", ()))
    setup = setup_nsd(site)
    added = {"nsd.conf": f"server:\n  nsid: ascii_{NSID}\n", "example.org.zone": records}
    added["nsd.conf"] += "".join(f"  ip-address: {address}@53\n" for address in addresses)
    added["nsd.conf"] += "".join(f"  {option}\n" for option in options)
    for name, content in setup.files.items():
        (folder / name).write_text(content + added[name])
    log = folder / "nsd.log"
    with log.open("wb") as output:
        process = subprocess.Popen(setup.command, cwd=folder, stdout=output, stderr=output)
    try:
        wait_for(lambda: is_listening(site.port), process=process, log=log)
        yield site.port
    finally:
        # Its children end with it, within a moment; SIGKILL would leave them behind.
        process.terminate()
        end_process_in_time(process)


def end_process_in_time(process: subprocess.Popen[bytes]) -> None:
    """Wait for a terminated process to end; kill it if it does not."""
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        end_process(process)
