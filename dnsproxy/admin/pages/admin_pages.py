"""The admin pages of a DNS server beyond those of every program: `/table`, and `/explain?name=NAME`.

The law: pure; a large answer is made in pieces that each take less than a millisecond, so that no query waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dnsproxy.admin.explain import LONGEST, format_explanation_json
from dnsproxy.admin.listing import format_listing
from dnsproxy.hostnames.registry import Registry
from sidecar.answers import JSON, Answer, Route


def table_routes(registry: Registry, *, ttl: int, notes: Callable[[], Sequence[str]]) -> Mapping[str, Route]:
    """The pages, for serve_admin. `ttl` in seconds; `notes` gives what one should know of the data, at each request."""

    def show_table(_: Mapping[str, str]) -> Answer:
        return Answer(200, format_listing(registry, ttl=ttl, notes=notes()), JSON)

    def show_explanation(query: Mapping[str, str]) -> Answer:
        name = query.get("name", "")
        if not name.strip():
            return Answer(400, b"Say which name: /explain?name=app.example.org\n")
        if len(name) > LONGEST:
            return Answer(400, f"A name has at most 255 octets; more than {LONGEST} characters are none.\n".encode())
        return Answer(200, format_explanation_json(registry, name, ttl=ttl, notes=notes()), JSON)

    return {"/table": show_table, "/explain": show_explanation}
