"""The data plane: what carries the connections of pods to Services, as the doctor reads it.

The law: read again every EVERY seconds. If any part of a reading fails, what was read last stays: a setting that could
not be read is not absent, and a decision without it might be another. Only 404 is an absence. Tested in
tests/dnsproxy/operate/observe/test_data_plane.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NoReturn

import structlog
import trio

from dnsproxy.doctor.collect.read_workloads import read_components, read_daemon_sets
from dnsproxy.doctor.collect.reader import FORBIDDEN, Reader
from dnsproxy.doctor.facts.model import VERSION, Facts
from dnsproxy.doctor.judge.short_circuit import DataPlane, data_plane
from sidecar.kubernetes.http import ApiClient
from sidecar.values.errors import StartError
from sidecar.values.text import one_line

EVERY: Final = 60.0
"""Seconds. It changes rarely, but a new cluster has its CNI after its first pods."""
RETRY: Final = 10.0
_RIGHT: Final = "operate's account needs this right"

log = structlog.get_logger("dnsproxy.operate")


class DataPlaneReader:
    """Reads the data plane again and again; `plane` is None before the first time."""

    def __init__(self, client: ApiClient, on_change: Callable[[], None]) -> None:
        self.plane: DataPlane | None = None
        self.reason = "not read yet"
        """Why the last reading failed, with the right that is needed; empty if it succeeded."""
        self._client = client
        self._on_change = on_change

    async def run(self) -> NoReturn:
        """Read until cancelled."""
        while True:
            known = await self._read()
            await trio.sleep(EVERY if known else RETRY)

    async def _read(self) -> bool:
        reader = Reader(self._client)
        try:
            version = await reader.check()
            components = await read_components(reader, await read_daemon_sets(reader) or ())
        except StartError as error:
            self._note(str(error))
            return False
        self._note("; ".join(_failures(version, reader)))
        if self.reason:
            return False
        found = data_plane(Facts(VERSION, server_version=version, components=components))
        if found != self.plane:
            self.plane = found
            log.info("data plane", name=found.name, honours_ip_mode=found.honours_ip_mode.value, source=found.why)
            self._on_change()
        return True

    def _note(self, reason: str) -> None:
        if reason and reason != self.reason:
            log.warning("the data plane was not read, what was read last stays", cause=one_line(reason))
        self.reason = reason


def _failures(version: str, reader: Reader) -> Iterator[str]:
    if not version:
        # It shows the kube-proxy that is built into a distribution, without a DaemonSet.
        yield f"get /version: forbidden, or without a version in the answer; {_RIGHT}"
    for one in reader.failures:
        yield f"{one.what}: {one.why}{f'; {_RIGHT}' if one.why.startswith(FORBIDDEN) else ''}"
