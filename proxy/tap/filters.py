"""Which connections a listener wants to see: by client, route and end.

The law: an empty field wants everything, several values of one field are alternatives, and all fields must match. The
command and `GET /tap` read the same texts. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from proxy.tap.ended import Ended, Ending
from sidecar.values.networks import Network, is_in_networks, parse_network
from sidecar.values.text import quoted

_FIELDS: Final = ("client", "route", "end")


@dataclass(frozen=True, slots=True)
class TapFilter:
    """The connections to show."""

    clients: tuple[Network, ...] = ()
    routes: tuple[str, ...] = ()
    """Parts of the listener's `ADDR:PORT`."""
    ends: tuple[Ending, ...] = ()

    def wants(self, event: Ended) -> bool:
        """Whether all fields match."""
        return (
            (not self.ends or event.end in self.ends)
            and (not self.routes or any(part in event.route for part in self.routes))
            and (not self.clients or is_in_networks(event.client, self.clients))
        )


def parse_route_part(text: str) -> str:
    """A part of `ADDR:PORT`. Raises ValueError."""
    part = text.strip()
    if not part or "," in part or not part.isprintable():
        raise ValueError(f"{quoted(text)} is not a part of a listening address; try 192.0.2.10:8443 or :8443")
    return part


def parse_ending(text: str) -> Ending:
    """One of Ending; `-` may stand for the space. Raises ValueError."""
    given = text.strip().lower()
    for one in Ending:
        if given in {one.value, one.value.replace(" ", "-")}:
            return one
    raise ValueError(f"{quoted(text)} is not an end; it is one of {', '.join(Ending)}")


def parse_filter(fields: Mapping[str, str]) -> TapFilter:
    """The filter of `GET /tap?client=...&route=...&end=...`; a comma separates values. Raises ValueError."""
    unknown = sorted(fields.keys() - set(_FIELDS))
    if unknown:
        raise ValueError(f"{quoted(unknown[0])} is not a field; there are {', '.join(_FIELDS)}")
    values = {field: [part for part in fields.get(field, "").split(",") if part.strip()] for field in _FIELDS}
    return TapFilter(
        clients=tuple(map(parse_network, values["client"])),
        routes=tuple(map(parse_route_part, values["route"])),
        ends=tuple(map(parse_ending, values["end"])),
    )


def format_filter(wanted: TapFilter) -> str:
    """The query that parse_filter reads, with `?`; empty if everything is wanted."""
    fields = {
        "client": ",".join(map(str, wanted.clients)),
        "route": ",".join(wanted.routes),
        "end": ",".join(wanted.ends),
    }
    given = {field: text for field, text in fields.items() if text}
    return f"?{urlencode(given)}" if given else ""
