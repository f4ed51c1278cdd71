"""`dnsproxy install` where dnsproxy would forward all other names elsewhere: refused, or accepted and reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dnsproxy.install.run.test_applying import cluster, corefile
from tests.dnsproxy.install.run.test_upstream_comparison import reporting
from tests.dnsproxy.install.test_cluster_command import Run, run
from tests.kit.faulty_upstream import Script, faulty_upstream, silence
from tests.kit.manifest_cluster import Manifest, pick


def forwarding_to(*lines: str) -> list[Manifest]:
    objects = cluster()
    data = pick(objects, "ConfigMap", "coredns")["data"]
    before, _, rest = data["Corefile"].partition("    forward . /etc/resolv.conf {")
    data["Corefile"] = before + "\n".join(lines) + rest.partition("}")[2]
    return objects


async def install(objects: list[Manifest], script: Script, folder: Path, *more: str) -> Run:
    async with faulty_upstream(script, silence) as server:
        return await run("install", objects, server, folder, "--address", str(server.endpoint), *more)


@pytest.mark.parametrize(
    ("lines", "forwards"),
    [
        pytest.param(["forward . /etc/resolv.conf"], ". /etc/resolv.conf", id="the node's"),
        pytest.param(["forward . 192.0.2.1"], ". 192.0.2.1", id="an address"),
        pytest.param(
            ["forward corp.test 10.0.0.5", "forward . 192.0.2.1"], ". 192.0.2.1", id="a zone that never comes"
        ),
    ],
)
async def test_equal_upstreams_are_installed_without_a_word(tmp_path: Path, lines: list[str], forwards: str) -> None:
    done = await install(forwarding_to(*lines), reporting(forwards), tmp_path)
    assert (done.status, done.verdict) == (0, "installed and loaded: the cluster's DNS asks dnsproxy"), done.errors
    assert "other names" not in done.errors
    assert "than before" not in done.errors


async def test_other_upstreams_are_refused_before_the_write_with_the_way_out(tmp_path: Path) -> None:
    objects = forwarding_to("forward . tls://192.0.2.1 {", "  tls_servername dns.example.org", "}")
    done = await install(objects, reporting(". /etc/resolv.conf"), tmp_path)
    assert (done.status, done.output) == (1, "")
    assert (
        "names of . went to tls://192.0.2.1:853#dns.example.org, and dnsproxy forwards them to /etc/resolv.conf; "
        "start dnsproxy serve with --upstream-configmap kube-system/coredns, or name them with --upstream, or accept "
        "it with --accept-upstreams"
    ) in done.errors
    assert "switchback" not in corefile(done.api)


async def test_accepted_upstreams_are_installed_and_reported(tmp_path: Path) -> None:
    objects = forwarding_to("forward . 192.0.2.1")
    done = await install(objects, reporting(". 192.0.2.9"), tmp_path, "--accept-upstreams")
    text = "names of . went to 192.0.2.1, and dnsproxy forwards them to 192.0.2.9"
    assert done.status == 0
    assert f"Note: other upstreams than before: {text}" in done.errors
    assert done.verdict.endswith(f"; but {text}")
    assert "switchback" in corefile(done.api)


@pytest.mark.parametrize("line", ["forward . https://192.0.2.1", "forward . /etc/upstreams.conf"])
async def test_what_dnsproxy_cannot_do_is_refused_even_if_it_cannot_be_asked(tmp_path: Path, line: str) -> None:
    done = await install(forwarding_to(line), silence, tmp_path)
    assert done.status == 1
    assert "dnsproxy would forward all other names to other upstreams than the cluster's DNS does: " in done.errors
    assert "accept it with --accept-upstreams" in done.errors
    assert "switchback" not in corefile(done.api)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        pytest.param(reporting(""), "it is older", id="older"),
        pytest.param(reporting(".."), "reports it in an unknown form", id="a version to come"),
    ],
)
async def test_an_unknown_report_is_noted(tmp_path: Path, script: Script, why: str) -> None:
    done = await install(forwarding_to("forward . 192.0.2.1"), script, tmp_path)
    assert done.status == 0
    assert "Note: whether dnsproxy forwards all other names where they go now is unknown" in done.errors
    assert why in done.errors


@pytest.mark.parametrize("more", [("--timeout", "0"), ("--dry-run",)])
async def test_they_are_compared_however_long_the_clusters_dns_is_asked(tmp_path: Path, more: tuple[str, ...]) -> None:
    done = await install(forwarding_to("forward . 192.0.2.1"), reporting(". /etc/resolv.conf"), tmp_path, *more)
    assert done.status == 1
    assert "names of . went to 192.0.2.1, and dnsproxy forwards them to /etc/resolv.conf" in done.errors
    assert "switchback" not in corefile(done.api)


@pytest.mark.parametrize(
    ("line", "script", "note"),
    [
        pytest.param("forward . 192.0.2.1", reporting(". 192.0.2.9"), "forwards them to 192.0.2.9", id="others"),
        pytest.param("forward . https://192.0.2.1", silence, "neither plain DNS nor DNS over TLS", id="impossible"),
    ],
)
async def test_a_printed_text_comes_with_a_note_on_them(tmp_path: Path, line: str, script: Script, note: str) -> None:
    done = await install(forwarding_to(line), script, tmp_path, "--method", "print")
    assert done.status == 0
    (told,) = [one for one in done.errors.splitlines() if "other upstreams than before: " in one]
    assert note in told
