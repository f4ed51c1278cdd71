"""BIND, also with our policy zone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from tests.kit.programs import program
from tests.kit.rpz.page import adapted, blocks
from tests.kit.rpz.publisher import key_statement
from tests.kit.rpz.resolver import Resolver, Site, resolving

_FOLDER = "/etc/bind"


def running_bind(site: Site) -> AbstractContextManager[Resolver]:
    """BIND in the foreground, with the policy zone."""
    policy, zone = blocks("BIND")
    (site.folder / "switchback.key").write_text(key_statement(site.secret), encoding="utf-8")
    primary = f"127.0.0.1 port {site.primary}"
    zone = adapted(zone, primary=primary, secret=site.secret, folders=(_FOLDER,), folder=site.folder)
    return bind_with(policy, site, zone=zone)


@contextmanager
def bind_with(options: str, site: Site, *, zone: str = "") -> Iterator[Resolver]:
    """BIND in the foreground, with these options behind its own, and a zone."""
    anchor = ""
    if site.trusted:
        flags, protocol, algorithm, *key = site.trusted.split()
        text = "".join(key)
        anchor = f'trust-anchors {{ example.org. static-key {flags} {protocol} {algorithm} "{text}"; }};'
    (site.folder / "named.conf").write_text(
        f"""options {{
directory "{site.folder}"; pid-file none; session-keyfile none; managed-keys-directory "{site.folder}";
listen-on port {site.port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};
recursion yes; allow-recursion {{ 127.0.0.1; }}; dnssec-validation {"yes" if site.trusted else "no"};
forward only; forwarders {{ 127.0.0.1 port {site.upstream}; }}; empty-zones-enable no;
{options}
}};
controls {{ }};
{anchor}
{zone}""",
        encoding="utf-8",
    )
    with resolving([program("named"), "-g", "-c", "named.conf"], site) as one:
        yield one
