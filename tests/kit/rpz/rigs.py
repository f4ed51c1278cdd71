"""One primary, one real resolver with its policy zone, and the upstream of all other names.

The law: the table of kinds has every resolver of the guide's page, and a rig of each has the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.kit.nsd import running_nsd
from tests.kit.ports import free_port
from tests.kit.rpz.bind import running_bind
from tests.kit.rpz.knot import running_knot_dns, running_knot_resolver
from tests.kit.rpz.nsd import running_nsd_secondary
from tests.kit.rpz.powerdns import running_powerdns
from tests.kit.rpz.publisher import SECRET, Publisher, publishing
from tests.kit.rpz.resolver import Resolver, Site
from tests.kit.rpz.unbound import running_unbound
from tests.kit.rpz.upstream import UPSTREAM, signed

HOSTS: Final = (
    "192.0.2.1 app.example.org",
    "192.0.2.2 *.apps.example.org",
    "192.0.2.3 exact.apps.example.org",
    "192.0.2.4 a.b.apps.example.org",
    "2001:db8::5 six.example.org",
    "192.0.2.6 twice.example.org",
    "192.0.2.7 twice.example.org",
)
DENIED: Final = "denied.apps.example.org"
"""A name that the primary never answers, below a wildcard: the policy lets it pass."""


@dataclass(frozen=True)
class Kind:
    """A resolver or a server, and what its rig needs."""

    name: str
    heading: str
    """Of its section in the page."""
    programs: tuple[str, ...]
    run: Callable[[Site], AbstractContextManager[Resolver]]
    is_keyed: bool = True
    """Whether it signs its requests."""
    has_helper: bool = False
    """Whether a server at the helper's port transfers the zone."""


RESOLVERS: Final = (
    Kind("bind", "BIND", ("named",), running_bind),
    Kind("unbound", "Unbound", ("unbound",), running_unbound, is_keyed=False),
    Kind("knot-resolver", "Knot Resolver", ("kresd", "knotd"), running_knot_resolver, has_helper=True),
    Kind("powerdns", "PowerDNS Recursor", ("pdns_recursor",), running_powerdns),
)
SECONDARIES: Final = (
    Kind("nsd", "NSD", ("nsd",), running_nsd_secondary, has_helper=True),
    Kind("knot-dns", "Knot DNS", ("knotd",), running_knot_dns, has_helper=True),
)


@dataclass(frozen=True)
class Rig:
    """What runs."""

    kind: Kind
    publisher: Publisher
    resolver: Resolver
    upstream: Resolver
    """Asked directly."""
    end_upstream: Callable[[], None]
    site: Site


@contextmanager
def upstream_of(folder: Path, records: str) -> Iterator[Resolver]:
    """NSD with these names."""
    folder.mkdir()
    with running_nsd(folder, records) as port:
        yield Resolver(port, folder / "nsd.log")


@contextmanager
def rig(
    kind: Kind,
    folder: Path,
    *,
    secret: str = SECRET,
    may_be_unsigned: bool = True,
    options: Sequence[str] = ("--deny", DENIED),
    is_signed: bool = False,
    names: str = UPSTREAM,
) -> Iterator[Rig]:
    """A running rig; `options` are flags of the primary, `names` the lines of the upstream's zone.

    `may_be_unsigned`: the primary lets a resolver go without a key that cannot sign.
    `is_signed`: the upstream's zone is signed, and the resolver verifies it.
    """
    place = folder / kind.name
    place.mkdir()
    port, helper = free_port(), free_port()
    if may_be_unsigned and not kind.is_keyed:
        options = [*options, "--rpz-allow-unsigned", "127.0.0.1/32"]
    notified = helper if kind.has_helper else port
    records, key = signed(names) if is_signed else (names, None)
    with (
        ExitStack() as ending,
        publishing(folder / "primary", *HOSTS, notify=[notified], options=options) as publisher,
    ):
        upstream = ending.enter_context(upstream_of(folder / "upstream", records))
        site = Site(place, publisher.port, secret, upstream.port, key, port, helper)
        with kind.run(site) as resolver:
            yield Rig(kind, publisher, resolver, upstream, ending.close, site)
