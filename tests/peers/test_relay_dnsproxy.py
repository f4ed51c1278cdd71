"""The relay's resolver with the real dnsproxy: the relay must not use it unnoticed for its backend's address."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.backends.name_resolver import Found, NameResolver
from tests.kit.coredns import running_coredns
from tests.kit.serve_process import serving

NAME = "app.example.org"
TABLE = ["--host", f"{NAME}=192.0.2.1", "--upstream", "127.0.0.1:9"]

FORWARDING = """\
example.org {{
    bind 127.0.0.1
    forward . 127.0.0.1:{port}
}}
. {{
    bind 127.0.0.1
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"""


def resolver_at(port: int, folder: Path) -> NameResolver:
    conf = folder / "resolv.conf"
    conf.write_text("nameserver 127.0.0.1\n")
    return NameResolver(conf, folder / "hosts", port=port)


async def test_dnsproxy_itself_is_reported_for_every_name(tmp_path: Path) -> None:
    with serving(tmp_path, *TABLE) as server:
        resolver = resolver_at(server.port, tmp_path)
        assert await resolver.look_up(NAME) == Found(("192.0.2.1",), 5)
        for name in (NAME, f"{NAME}.", "elsewhere.example.net", "web"):
            assert await resolver.asks_dnsproxy(name)
    assert not await resolver.asks_dnsproxy(NAME)


@pytest.mark.peer("coredns")
async def test_behind_coredns_it_is_reported_for_the_names_that_go_there(tmp_path: Path) -> None:
    with serving(tmp_path, *TABLE) as server:
        corefile = FORWARDING.format(port=server.port)
        with running_coredns(tmp_path, corefile) as front:
            resolver = resolver_at(front.port, tmp_path)
            assert await resolver.look_up(NAME) == Found(("192.0.2.1",), 5)
            assert await resolver.asks_dnsproxy(NAME)
            assert await resolver.asks_dnsproxy("other.example.org")
            assert not await resolver.asks_dnsproxy("ingress.web.svc.cluster.local")
