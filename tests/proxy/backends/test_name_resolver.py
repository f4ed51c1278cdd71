"""Look-ups in the hosts file and at a nameserver that the test plays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dnsproxy.dns import probe
from proxy.backends import name_resolver
from proxy.backends.health import Cause, Failure
from proxy.backends.name_resolver import HOSTS_SECONDS, LONGEST, SHORTEST, Found, NameResolver
from tests.proxy.backends.nameserver import Records, played_nameserver

NAME = "backend.example.org"
WHOLE = f"{NAME}."


@pytest.mark.parametrize(
    ("v4", "v6", "addresses"),
    [
        pytest.param(["192.0.2.1"], ["2001:db8::1"], ("2001:db8::1", "192.0.2.1"), id="both families, IPv6 first"),
        pytest.param(["192.0.2.1"], [], ("192.0.2.1",), id="IPv4 alone"),
        pytest.param([], ["2001:db8::1"], ("2001:db8::1",), id="IPv6 alone"),
    ],
)
async def test_both_families_are_asked_for(
    tmp_path: Path, v4: list[str], v6: list[str], addresses: tuple[str, ...]
) -> None:
    async with played_nameserver(tmp_path) as (server, resolver):
        server.put(WHOLE, "A", v4)
        server.put(WHOLE, "AAAA", v6)
        assert await resolver.look_up(NAME) == Found(addresses, 60)


@pytest.mark.parametrize(
    ("ttl", "seconds"),
    [
        pytest.param(0, SHORTEST, id="none"),
        pytest.param(7, 7, id="short"),
        pytest.param(86_400, LONGEST, id="a day"),
    ],
)
async def test_an_answer_counts_for_its_ttl_within_reason(tmp_path: Path, ttl: int, seconds: float) -> None:
    async with played_nameserver(tmp_path) as (server, resolver):
        server.put(WHOLE, "A", ["192.0.2.1"], ttl=ttl)
        server.put(WHOLE, "AAAA", [])
        assert await resolver.look_up(NAME) == Found(("192.0.2.1",), seconds)


async def test_the_ttl_of_a_cname_counts_too(tmp_path: Path) -> None:
    rows: Records = [
        (WHOLE, 9, "CNAME", ["other.example.net."]),
        ("other.example.net.", 60, "A", ["192.0.2.1"]),
    ]
    async with played_nameserver(tmp_path) as (server, resolver):
        server.answers[WHOLE, "A"] = rows
        server.answers[WHOLE, "AAAA"] = rows[:1]
        assert await resolver.look_up(NAME) == Found(("192.0.2.1",), 9)


async def test_a_truncated_reply_is_asked_for_over_tcp(tmp_path: Path) -> None:
    async with played_nameserver(tmp_path) as (server, resolver):
        server.truncates = True
        server.put(WHOLE, "A", ["192.0.2.1"])
        server.put(WHOLE, "AAAA", ["2001:db8::1"])
        assert await resolver.look_up(NAME) == Found(("2001:db8::1", "192.0.2.1"), 60)


@pytest.mark.parametrize("silent", ["A", "AAAA"])
async def test_an_unanswered_family_delays_the_other_only_briefly(tmp_path: Path, silent: str) -> None:
    texts = {"A": "192.0.2.1", "AAAA": "2001:db8::1"}
    (told,) = {"A", "AAAA"} - {silent}
    async with played_nameserver(tmp_path) as (server, resolver):
        server.answers[WHOLE, silent] = None
        server.put(WHOLE, told, [texts[told]])
        # Queried again soon, because the other family may exist.
        assert await resolver.look_up(NAME) == Found((texts[told],), HOSTS_SECONDS, one_family=True)


@pytest.mark.parametrize("rcode", ["SERVFAIL", "REFUSED", "NXDOMAIN"])
async def test_a_fault_in_one_family_does_not_hide_the_other(tmp_path: Path, rcode: str) -> None:
    async with played_nameserver(tmp_path) as (server, resolver):
        server.put(WHOLE, "A", ["192.0.2.1"])
        server.answers[WHOLE, "AAAA"] = rcode
        unknown = rcode != "NXDOMAIN"
        assert await resolver.look_up(NAME) == Found(("192.0.2.1",), HOSTS_SECONDS, one_family=unknown)


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        pytest.param("NXDOMAIN", Cause.DNS_NXDOMAIN, id="no such name"),
        pytest.param([], Cause.DNS_NXDOMAIN, id="a name without addresses"),
        pytest.param("SERVFAIL", Cause.DNS_ERROR, id="SERVFAIL"),
        pytest.param("REFUSED", Cause.DNS_ERROR, id="REFUSED"),
        pytest.param("NOTIMP", Cause.DNS_ERROR, id="NOTIMP"),
        pytest.param(None, Cause.DNS_TIMEOUT, id="silence"),
    ],
)
async def test_a_failed_look_up_has_its_cause(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: Records | str | None, cause: Cause
) -> None:
    if answer is None:
        monkeypatch.setattr(name_resolver, "LOOKUP_SECONDS", 0.2)
    async with played_nameserver(tmp_path) as (server, resolver):
        server.answers[WHOLE, "A"] = server.answers[WHOLE, "AAAA"] = answer
        found = await resolver.look_up(NAME)
        assert isinstance(found, Failure)
        assert found.cause is cause
        assert found.detail


async def test_a_name_without_ipv4_and_with_unknown_ipv6_has_not_vanished(tmp_path: Path) -> None:
    async with played_nameserver(tmp_path) as (server, resolver):
        server.put(WHOLE, "A", [])
        server.answers[WHOLE, "AAAA"] = "SERVFAIL"
        found = await resolver.look_up(NAME)
        assert isinstance(found, Failure)
        assert found.cause is Cause.DNS_ERROR


@pytest.mark.parametrize(
    ("conf", "name", "asked"),
    [
        pytest.param("", "web", ["web."], id="no search list"),
        pytest.param(
            "search a.example.org b.example.org\noptions ndots:2\n",
            "web.shop",
            ["web.shop.a.example.org.", "web.shop.b.example.org.", "web.shop."],
            id="fewer dots than ndots",
        ),
        pytest.param(
            "search a.example.org\n", "web.shop", ["web.shop.", "web.shop.a.example.org."], id="as many dots as ndots"
        ),
        pytest.param("search a.example.org\noptions ndots:5\n", "web.shop.", ["web.shop."], id="a final dot"),
    ],
)
async def test_the_search_list_is_gone_through(tmp_path: Path, conf: str, name: str, asked: list[str]) -> None:
    async with played_nameserver(tmp_path, conf=conf) as (server, resolver):
        found = await resolver.look_up(name)
        assert isinstance(found, Failure)
        assert [one for one, kind in server.asked if kind == "A"] == asked
        server.put(asked[-1], "A", ["192.0.2.1"])
        server.put(asked[-1], "AAAA", [])
        assert await resolver.look_up(name) == Found(("192.0.2.1",), 60)


async def test_the_hosts_file_is_asked_first_and_read_anew(tmp_path: Path) -> None:
    async with played_nameserver(tmp_path, hosts=f"192.0.2.9 {NAME}\n") as (server, resolver):
        assert await resolver.look_up(NAME) == Found(("192.0.2.9",), HOSTS_SECONDS)
        assert not server.asked
        resolver.hosts.write_text(f"192.0.2.10 {NAME}\n")
        assert await resolver.look_up(NAME) == Found(("192.0.2.10",), HOSTS_SECONDS)
        resolver.hosts.unlink()
        server.put(WHOLE, "A", ["192.0.2.1"])
        server.put(WHOLE, "AAAA", [])
        assert await resolver.look_up(NAME) == Found(("192.0.2.1",), 60)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(b"# caf\xe9\n%b", id="Latin-1 in a comment"),
        pytest.param(b"sortlist \xff\n%b", id="in a line that is ignored"),
        pytest.param(b"\xef\xbb\xbf%b", id="byte order mark"),
    ],
)
async def test_an_octet_that_is_not_utf_8_costs_no_line_of_the_resolv_conf(tmp_path: Path, spoil: bytes) -> None:
    async with played_nameserver(tmp_path) as (server, resolver):
        server.put(WHOLE, "A", ["192.0.2.1"])
        server.put(WHOLE, "AAAA", [])
        content = resolver.resolv_conf.read_bytes()
        nameserver = next(line for line in content.splitlines(keepends=True) if line.startswith(b"nameserver"))
        resolver.resolv_conf.write_bytes(spoil % nameserver)
        assert await resolver.look_up(WHOLE) == Found(("192.0.2.1",), 60)


@pytest.mark.parametrize(
    "conf",
    [
        pytest.param(None, id="not there"),
        pytest.param(b"", id="empty"),
        pytest.param(b"search example.org\n", id="no nameserver"),
        pytest.param(b"nameserver dns.example.org\n", id="a nameserver by name"),
        pytest.param(b"nameserver \xff\xfe\n", id="no text"),
    ],
)
async def test_an_unusable_resolv_conf_is_an_error_that_does_not_end_the_look_ups(
    tmp_path: Path, conf: bytes | None
) -> None:
    path = tmp_path / "resolv.conf"
    if conf is not None:
        path.write_bytes(conf)
    found = await NameResolver(path, tmp_path / "hosts").look_up(NAME)
    assert isinstance(found, Failure)
    assert found.cause is Cause.DNS_ERROR
    assert conf is None or found.detail == f"{path} has no nameserver that can be used"


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param("nameserver dns.example.org\n", id="a nameserver by name"),
        pytest.param("nameserver\n", id="none"),
        pytest.param("nameserver 192.0.2.1.7\n", id="no address"),
        pytest.param(f"search {'a' * 64}\n", id="a label too long"),
        pytest.param("search a..b example.net\n", id="an empty label beside a domain"),
        pytest.param("domain ..\n", id="a domain of nothing"),
        pytest.param("options ndots:x timeout:-1 unknown\n", id="options"),
        pytest.param("\0\x1b[31m\n", id="no text"),
    ],
)
async def test_a_bad_line_is_skipped_and_the_others_count(tmp_path: Path, bad: str) -> None:
    async with played_nameserver(tmp_path) as (server, resolver):
        server.put(WHOLE, "A", ["192.0.2.1"])
        server.put(WHOLE, "AAAA", [])
        content = resolver.resolv_conf.read_text()
        for text in (bad + content, content + bad):
            resolver.resolv_conf.write_text(text)
            assert await resolver.look_up(WHOLE) == Found(("192.0.2.1",), 60)


async def test_what_is_no_regular_file_is_an_error_and_is_not_waited_for(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (fifo, Path("/dev/zero")):
        found = await NameResolver(path, tmp_path / "hosts").look_up(NAME)
        assert isinstance(found, Failure)
        assert "is no regular file" in found.detail
        async with played_nameserver(tmp_path) as (server, resolver):
            server.put(WHOLE, "A", ["192.0.2.1"])
            server.put(WHOLE, "AAAA", [])
            resolver.hosts.unlink(missing_ok=True)
            resolver.hosts.symlink_to(path)
            assert await resolver.look_up(WHOLE) == Found(("192.0.2.1",), 60)
            resolver.hosts.unlink()


async def test_a_nameserver_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    async with played_nameserver(tmp_path) as (_, resolver):
        pass
    found = await resolver.look_up(NAME)
    assert isinstance(found, Failure)
    assert found.cause in {Cause.DNS_ERROR, Cause.DNS_TIMEOUT}


@pytest.mark.parametrize(
    "name", [f"{'a' * 64}.example.org", f"{'a.' * 140}org", "a..b"], ids=["label", "name", "empty"]
)
async def test_a_name_that_dns_has_no_form_for_is_an_error(tmp_path: Path, name: str) -> None:
    async with played_nameserver(tmp_path) as (_, resolver):
        found = await resolver.look_up(name)
        assert isinstance(found, Failure)
        assert found.cause is Cause.DNS_ERROR
        assert not await resolver.asks_dnsproxy(name)


def test_the_probe_is_the_one_that_dnsproxy_answers() -> None:
    assert probe.LABEL == name_resolver._PROBE_LABEL
    assert probe.NONCE_DIGITS == 2 * name_resolver._PROBE_NONCE_OCTETS
    assert f'"{probe.TEXT.decode()}"' == name_resolver._PROBE_TEXT


async def test_a_server_that_knows_nothing_of_the_probe_is_not_dnsproxy(tmp_path: Path) -> None:
    async with played_nameserver(tmp_path) as (server, resolver):
        assert not await resolver.asks_dnsproxy(NAME)
        assert sum(server.asked.values()) == 1
