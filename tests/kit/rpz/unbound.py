"""Unbound, also with our policy zone. It knows no TSIG."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from tests.kit.programs import program
from tests.kit.rpz.page import adapted, blocks
from tests.kit.rpz.resolver import Resolver, Site, resolving

_FOLDER = "/var/lib/unbound"


def running_unbound(site: Site) -> AbstractContextManager[Resolver]:
    """Unbound in the foreground, with the policy zone."""
    (block,) = blocks("Unbound")
    primary = f"127.0.0.1@{site.primary}"
    policy = adapted(block, primary=primary, secret=site.secret, folders=(_FOLDER,), folder=site.folder)
    return unbound_with(policy, site)


@contextmanager
def unbound_with(lines: str, site: Site) -> Iterator[Resolver]:
    """Unbound in the foreground, with these lines behind its own."""
    anchor = f"example.org. DNSKEY {site.trusted}" if site.trusted else ""
    (site.folder / "unbound.conf").write_text(
        f"""server:
    interface: 127.0.0.1
    port: {site.port}
    access-control: 127.0.0.0/8 allow
    username: ""
    chroot: ""
    pidfile: ""
    directory: "{site.folder}"
    use-syslog: no
    verbosity: 2
    do-not-query-localhost: no
    trust-anchor: "{anchor}"
    auto-trust-anchor-file: ""
remote-control:
    control-enable: no
forward-zone:
    name: "."
    forward-addr: 127.0.0.1@{site.upstream}
{lines}""",
        encoding="utf-8",
    )
    with resolving([program("unbound"), "-d", "-p", "-c", "unbound.conf"], site) as one:
        yield one
