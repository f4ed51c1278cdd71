"""`dnsproxy table` and `dnsproxy explain` as programs: what they print, where, and their exit statuses."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
import sys
from typing import Any, Final

import pytest
import trio
from click.testing import CliRunner

from dnsproxy.cli import main
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Rejection, Terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.admin.administering import administered
from tests.kit.prepared_program import run_shared
from tests.kit.stepping import parse_hosts

OLD, YOUNG = "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z"
COLOURLESS: Final = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}


def claim(hostname: str, name: str = "web", created: str = OLD, **rest: Any) -> Claim:
    reach = Reach.ONE_LABEL if hostname.startswith("*.") else Reach.NAME
    return Claim(hostname, reach, Origin("Ingress", name, "shop", created), Terms(ingress_class="nginx", **rest))


def shop() -> Registry:
    registry = Registry(targets=Targets(("192.0.2.10", "2001:db8::10")), guards=Guards(deny=("no.example.org",)))
    registry.replace("Ingress", "shop/web", [claim("app.example.org"), claim("*.wild.example.org")])
    registry.replace("Ingress", "shop/late", [claim("app.example.org", "late", YOUNG), claim("no.example.org", "late")])
    fault = Rejection(Origin("Ingress", "bad", "shop"), "'-x.example.org': a label '-x' is not a host label")
    registry.replace("Ingress", "shop/bad", [claim("b.example.net", "bad")], [fault])
    return registry


async def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return await run_shared("dnsproxy", *arguments, environment={**COLOURLESS, **environment})


async def ask_shop(*arguments: str, **environment: str) -> tuple[int, str, str]:
    async with administered(shop(), notes=lambda: ["HTTPRoute is not synced yet\x1b[2J"]) as endpoint:
        done = await run(arguments[0], "--admin", str(endpoint), *arguments[1:], **environment)
    return done.returncode, done.stdout, done.stderr


async def test_the_table_is_columns_on_stdout_and_notes_on_stderr() -> None:
    status, output, errors = await ask_shop("table")
    assert status == 0
    assert output.splitlines() == [
        "NAME                ADDRESSES                ORIGIN            CLASS",
        "b.example.net       192.0.2.10,2001:db8::10  Ingress shop/bad  nginx",
        "app.example.org     192.0.2.10,2001:db8::10  Ingress shop/web  nginx",
        "*.wild.example.org  192.0.2.10,2001:db8::10  Ingress shop/web  nginx",
    ]
    assert errors == "Note: HTTPRoute is not synced yet\\x1b[2J\n"


async def test_a_hosts_file_of_the_table_reads_back() -> None:
    status, output, _ = await ask_shop("table", "--output", "hosts", "--zone", "Example.ORG.")
    claims, rejections, _ = parse_hosts(output)
    assert (status, rejections) == (0, [])
    assert {one.hostname: one.terms.addresses for one in claims.values()} == {
        "app.example.org": ("192.0.2.10", "2001:db8::10")
    }


async def test_json_has_the_chosen_rows_and_stderr_is_empty() -> None:
    status, output, errors = await ask_shop("table", "--output", "json", "--zone", "example.net")
    document = json.loads(output)
    assert (status, errors) == (0, "")
    assert [row["hostname"] for row in document["names"]] == ["b.example.net"]
    assert document["notes"] == ["HTTPRoute is not synced yet\x1b[2J"]


async def test_an_empty_table_is_not_a_failure_and_is_reported() -> None:
    status, output, errors = await ask_shop("table", "--zone", "example.com")
    assert (status, len(output.splitlines())) == (0, 1)
    assert errors.endswith("No name is in these zones.\n")


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        pytest.param("app.example.org", 0, "Ingress shop/late claims it: Ingress shop/web has it", id="answered"),
        pytest.param("App.Example.ORG.", 0, "Ingress shop/late claims it: Ingress shop/web has it", id="any case"),
        pytest.param("x.wild.example.org", 0, "the wildcard *.wild.example.org, which covers one label", id="wildcard"),
        pytest.param("no.example.org", 1, "it is denied (--deny)", id="denied"),
        pytest.param("nobody.example.org", 1, "no object claims it", id="claimed by nobody"),
        pytest.param("-x.example.org", 1, "Ingress shop/bad: '-x.example.org': a label", id="rejected"),
        pytest.param("a&name=app.example.org", 1, "is not a host label", id="no second field"),
    ],
)
async def test_the_exit_status_is_the_answer_whatever_the_form(name: str, status: int, said: str, output: str) -> None:
    got, text, errors = await ask_shop("explain", "--output", output, "--", name)
    assert (got, errors) == (status, "")
    if output == "json":
        assert (json.loads(text)["answer"] is not None) is (status == 0)
    else:
        assert said in text
        assert text.isascii()
        assert "\x1b" not in text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(("explain",), "NAME: is required", id="no name"),
        pytest.param(("explain", " "), "NAME: a name is needed", id="an empty name"),
        pytest.param(("explain", "a" * 1001), "NAME: a name has at most 255 octets", id="a long name"),
        pytest.param(("explain", "a", "b"), "unexpected extra argument", id="two names"),
        pytest.param(("explain", "a", "--output", "hosts"), "--output: 'hosts' is not one of", id="output of explain"),
        pytest.param(("table", "--output", "yaml"), "--output: 'yaml' is not one of", id="output"),
        pytest.param(("table", "--zone", "a..b"), "--zone: 'a..b': a label is empty", id="zone"),
        pytest.param(("table", "--zone", "*.example.org"), "name the zone, example.org", id="wildcard for a zone"),
        pytest.param(("table", "--admin", "localhost:8081"), "--admin: 'localhost' is not an IP address", id="admin"),
        pytest.param(("table", "--admin", "off"), "--admin: 'off' is not ADDR:PORT", id="no admin port"),
        pytest.param(("table", "x"), "unexpected extra argument", id="an argument"),
    ],
)
def test_bad_usage_is_status_2_and_a_line(arguments: tuple[str, ...], complaint: str) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("arguments", [("table",), ("explain", "a.example.org")], ids=["table", "explain"])
def test_a_server_that_is_not_there_is_status_3_and_a_line_that_names_the_flag(arguments: tuple[str, ...]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = Endpoint("127.0.0.1", unused.getsockname()[1])
        result = CliRunner().invoke(main, arguments, env={"DNSPROXY_ADMIN": str(endpoint)})
    assert result.exit_code == 3
    assert result.stderr.startswith(f"Error: --admin {endpoint}: no server answers there (Connection refused);")
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


@pytest.mark.parametrize("arguments", [("table",), ("explain", "a.example.org")], ids=["table", "explain"])
async def test_an_answer_that_is_none_is_status_3(arguments: tuple[str, ...]) -> None:
    async def say_html(stream: trio.SocketStream) -> None:
        await stream.receive_some(65_536)
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n<h1>\x1b[2J</h1>"[:61])

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, say_html, [listener])
        done = await run(*arguments, "--admin", f"127.0.0.1:{listener.socket.getsockname()[1]}")
        nursery.cancel_scope.cancel()
    assert done.returncode == 3
    assert "the answer is not one of this version's `dnsproxy serve`" in done.stderr
    assert "\x1b" not in done.stderr


async def test_a_reader_that_leaves_ends_it_quietly() -> None:
    registry = Registry(targets=Targets(("192.0.2.10",)), guards=Guards())
    for number in range(20_000):
        registry.replace("Ingress", str(number), [claim(f"h{number}.example.org")])
    async with administered(registry) as endpoint:
        command = f"set -o pipefail; {sys.executable} -m dnsproxy table --admin {endpoint} | head -1"
        done = await trio.run_process(["bash", "-c", command], capture_stdout=True, capture_stderr=True, check=False)
    assert done.stdout.startswith(b"NAME ")
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
    ids=["terminal", "NO_COLOR", "dumb"],
)
async def test_colours_are_for_terminals_that_want_them(environment: dict[str, str], coloured: bool) -> None:
    ours, theirs = pty.openpty()
    try:
        async with administered(shop()) as endpoint:
            await trio.run_process(
                [sys.executable, "-m", "dnsproxy", "explain", "app.example.org", "--admin", str(endpoint)],
                stdout=theirs,
                env={**COLOURLESS, "TERM": "xterm", **environment},
            )
        shown = os.read(ours, 65_536)
    finally:
        os.close(theirs)
        os.close(ours)
    assert b"app.example.org is answered with" in shown
    assert (b"\x1b[32m" in shown) is coloured
