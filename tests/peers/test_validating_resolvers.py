"""A resolver that verifies DNSSEC before dnsproxy: the guide's lines let it answer our hosts of a signed zone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import dns.flags
import dns.rcode
import pytest

from tests.kit.rpz.bind import bind_with
from tests.kit.rpz.page import PAGES, blocks
from tests.kit.rpz.publisher import SECRET
from tests.kit.rpz.resolver import Resolver, Site
from tests.kit.rpz.rigs import upstream_of
from tests.kit.rpz.unbound import unbound_with
from tests.kit.rpz.upstream import UPSTREAM, signed
from tests.kit.serve_process import serving

Run = Callable[[str, Site], AbstractContextManager[Resolver]]

PAGE: Final = (PAGES / "standalone.md").read_text(encoding="utf-8")
UNBOUND, BIND, _ = blocks("Behind a resolver that verifies DNSSEC", page=PAGE)
KINDS: Final = (
    pytest.param(unbound_with, UNBOUND, id="Unbound", marks=pytest.mark.peer("nsd", "unbound")),
    pytest.param(bind_with, BIND, id="BIND", marks=pytest.mark.peer("nsd", "named")),
)
OURS: Final = "192.0.2.1"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A resolver's place before dnsproxy, which has one host of a signed zone and forwards the rest."""
    records, key = signed(UPSTREAM)
    with upstream_of(tmp_path / "upstream", records) as upstream:
        names = ("--host", f"app.example.org={OURS}")
        with serving(tmp_path, *names, "--upstream", f"127.0.0.1:{upstream.port}") as ours:
            (tmp_path / "resolver").mkdir()
            yield Site(tmp_path / "resolver", 9, SECRET, ours.port, key)


def verified(resolver: Resolver, name: str) -> bool:
    reply = resolver.ask(name, dnssec=True)
    assert reply.rcode() == dns.rcode.NOERROR
    return bool(reply.flags & dns.flags.AD)


@pytest.mark.parametrize(("run", "lines"), KINDS)
def test_the_guides_lines_let_it_answer_our_host_and_verify_the_others(run: Run, lines: str, site: Site) -> None:
    with run(lines, site) as resolver:
        assert resolver.addresses("app.example.org") == [OURS]
        assert not verified(resolver, "app.example.org")
        assert verified(resolver, "www.example.org")


@pytest.mark.parametrize(("run", "lines"), KINDS)
def test_without_them_only_our_host_fails(run: Run, lines: str, site: Site) -> None:
    assert lines
    with run("", site) as resolver:
        assert resolver.rcode("app.example.org") == "SERVFAIL"
        assert verified(resolver, "www.example.org")
