"""The metrics of a running program, read like Prometheus reads them."""

from __future__ import annotations

import http.client
import urllib.request
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

_SECONDS = 10


def scrape(admin: str) -> Mapping[str, float]:
    """Every sample of the admin port `ADDR:PORT` by name, summed over labels. Raises OSError."""
    with _open(admin, "/metrics") as reply:
        return parse_metrics(reply.read().decode())


def status_of(admin: str, path: str) -> int:
    """The HTTP status of a path that answers well. Raises OSError otherwise."""
    with _open(admin, path) as reply:
        return int(reply.status)


def is_ready(admin: str) -> bool:
    """Whether the program is ready, as a kubelet sees it; a port that does not answer is not."""
    with suppress(OSError):
        return status_of(admin, "/readyz") == http.client.OK
    return False


def _open(admin: str, path: str) -> Any:
    # A proxy from the environment could not reach our loopback.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return opener.open(f"http://{admin}{path}", timeout=_SECONDS)


def parse_metrics(text: str) -> Mapping[str, float]:
    """The same from the text itself. A missing name raises KeyError; it never counts as 0."""
    sums: defaultdict[str, float] = defaultdict(float)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            sums[sample.name] += sample.value
    return dict(sums)
