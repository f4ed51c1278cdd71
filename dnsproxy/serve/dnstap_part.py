"""The part of a service that sends to a dnstap collector (--dnstap), with its metrics and its note on the page.

The law: without the flag it does nothing and shows nothing. What the tap of the admin port shows is not its matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from dnsproxy.answers.counters import Counters
from dnsproxy.dnstap.numbers import DnstapNumbers
from dnsproxy.dnstap.settings import DnstapSettings, format_collector
from dnsproxy.tap.hub import Tap

_FINISH_SECONDS: Final = 2.0
"""The most that the end of the program waits for a collector, if --drain allows it."""


class DnstapPart:
    """What `--dnstap` makes of the tap of a server."""

    def __init__(
        self, settings: DnstapSettings | None, tap: Tap, *, counters: Callable[[], Counters], drain: float
    ) -> None:
        self._settings = settings
        self._tap = tap
        self._finish = min(drain, _FINISH_SECONDS)
        self._counters = counters
        self.numbers = DnstapNumbers(self._asked)

    async def run(self) -> None:
        """Send until cancelled; returns at once without a collector."""
        if self._settings is not None:
            from dnsproxy.dnstap.collector import run_dnstap  # noqa: PLC0415

            await run_dnstap(self._tap, self._settings, self.numbers, finish=self._finish)

    def metrics(self) -> Iterator[Metric]:
        """The metric families; none without a collector."""
        if self._settings is not None:
            yield from dnstap_metrics(self.numbers)

    def notes(self) -> list[str]:
        """What the page says while there is no collector."""
        if self._settings is None or self.numbers.connected:
            return []
        return [f"--dnstap {format_collector(self._settings.collector)}: not connected, queries are not sent there"]

    def _asked(self) -> int:
        counters = self._counters()
        return counters.requests_udp + counters.requests_tcp


def dnstap_metrics(numbers: DnstapNumbers) -> Iterator[Metric]:
    """The metric families of a server with a collector."""
    yield CounterMetricFamily("dnsproxy_dnstap_sent", "Queries sent to the dnstap collector.", value=numbers.sent)
    yield CounterMetricFamily(
        "dnsproxy_dnstap_dropped",
        "Queries that the dnstap collector did not get: it was away, or took less than came.",
        value=numbers.dropped,
    )
    yield GaugeMetricFamily(
        "dnsproxy_dnstap_connected", "Whether a dnstap collector takes queries.", value=numbers.connected
    )
