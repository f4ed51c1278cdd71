"""The metrics of a running program, read like Prometheus reads them."""

from __future__ import annotations

import urllib.request
from collections import defaultdict
from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

_SECONDS = 10


def scrape(admin: str) -> Mapping[str, float]:
    """Every sample of the admin port `ADDR:PORT` by name, summed over labels. Raises OSError."""
    # A proxy from the environment could not reach our loopback.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://{admin}/metrics", timeout=_SECONDS) as reply:
        return parse_metrics(reply.read().decode())


def parse_metrics(text: str) -> Mapping[str, float]:
    """The same from the text itself. A missing name raises KeyError; it never counts as 0."""
    sums: defaultdict[str, float] = defaultdict(float)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            sums[sample.name] += sample.value
    return dict(sums)
