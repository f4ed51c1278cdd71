"""The flags of a primary and of a replica: their settings, and one line for each mistake, without a secret."""

from __future__ import annotations

import base64
import os
from ipaddress import ip_network
from pathlib import Path
from typing import Final

import pytest

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.dns.names import to_wire
from dnsproxy.primary.settings import LOOPBACK, LeaseRef, RpzSettings, ServiceEndpoints
from dnsproxy.replica.settings import ReplicaSettings
from dnsproxy.secondary.source import RpzSource
from dnsproxy.serve.settings import ServeSettings
from dnsproxy.zone.policy import Triggers, Wildcards
from dnsproxy.zone.tsig_keys import TsigKey
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.serve.test_command import UPSTREAM, invoke, made

__all__ = ["made"]

SECRET: Final = base64.b64encode(b"a secret that nobody may see").decode()
ZONE: Final = to_wire("rpz.example.org")
KEY: Final = f'key "transfer" {{ algorithm hmac-sha256; secret "{SECRET}"; }};\n'
RPZ: Final = ("--rpz", "rpz.example.org")
SOURCE: Final = "rpz:rpz.example.org@192.0.2.53:53"


def test_a_zone_alone_is_for_this_host(made: list[ServeSettings]) -> None:
    assert invoke(*UPSTREAM, *RPZ).exit_code == 0
    assert made[0].rpz == RpzSettings(ZONE)
    assert (made[0].replica, RpzSettings(ZONE).allow) == (None, LOOPBACK)


def test_all_flags_of_a_primary(made: list[ServeSettings], tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(KEY, encoding="utf-8")
    flags = ["--rpz-key", str(key), "--rpz-allow", "192.0.2.0/24", "--rpz-allow", "2001:db8::7"]
    flags += ["--rpz-notify", "192.0.2.5", "--rpz-notify", "[2001:db8::5]:5353", "--rpz-notify", "service:dns/replicas"]
    flags += ["--rpz-wildcards", "widen", "--rpz-serial", str(tmp_path / "serial")]
    result = invoke(*UPSTREAM, *RPZ, *flags)
    assert result.exit_code == 0, result.output
    found = made[0].rpz
    assert found is not None
    assert found.keys == (TsigKey("transfer", "hmac-sha256", base64.b64decode(SECRET)),)
    assert found.allow == (ip_network("192.0.2.0/24"), ip_network("2001:db8::7"))
    services = ServiceEndpoints(ObjectRef("dns", "replicas"))
    assert found.notify == (Endpoint("192.0.2.5", 53), Endpoint("2001:db8::5", 5353), services)
    assert (found.wildcards, found.serial) == (Wildcards.WIDEN, tmp_path / "serial")
    assert found.triggers is Triggers.ADDRESSES


@pytest.mark.parametrize("triggers", Triggers)
def test_the_triggers_are_given_by_flag_or_by_variable(made: list[ServeSettings], triggers: Triggers) -> None:
    assert invoke(*UPSTREAM, *RPZ, "--rpz-triggers", triggers.value).exit_code == 0
    assert invoke(*UPSTREAM, *RPZ, DNSPROXY_RPZ_TRIGGERS=triggers.value).exit_code == 0
    assert [one.rpz and one.rpz.triggers for one in made] == [triggers] * 2


def test_variables_do_the_same(made: list[ServeSettings]) -> None:
    result = invoke(*UPSTREAM, DNSPROXY_RPZ="rpz.example.org", DNSPROXY_RPZ_ALLOW="192.0.2.0/24 198.51.100.7")
    assert result.exit_code == 0, result.output
    assert made[0].rpz is not None
    assert made[0].rpz.allow == (ip_network("192.0.2.0/24"), ip_network("198.51.100.7"))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (SOURCE, RpzSource(ZONE, "192.0.2.53")),
        ("rpz:RPZ.example.org.@192.0.2.53", RpzSource(ZONE, "192.0.2.53")),
        ("rpz:rpz.example.org@[2001:db8::53]:5353", RpzSource(ZONE, "2001:db8::53", 5353)),
        ("rpz:rpz.example.org@[2001:db8::53]", RpzSource(ZONE, "2001:db8::53")),
        ("rpz:rpz.example.org@Primary.dns.svc:1053", RpzSource(ZONE, "primary.dns.svc", 1053)),
    ],
)
def test_a_source_names_a_zone_and_a_primary(made: list[ServeSettings], source: str, expected: RpzSource) -> None:
    result = invoke(*UPSTREAM, "--source", source)
    assert result.exit_code == 0, result.output
    assert made[0].replica == ReplicaSettings((expected,))
    assert made[0].cluster is None


def test_a_hub_is_both_and_its_first_key_signs(made: list[ServeSettings], tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(KEY + KEY.replace("transfer", "second"), encoding="utf-8")
    other = "rpz:rpz.example.org@192.0.2.54"
    result = invoke(*UPSTREAM, *RPZ, "--source", SOURCE, "--source", other, "--rpz-key", str(key))
    assert result.exit_code == 0, result.output
    (settings,) = made
    assert settings.replica is not None
    assert settings.rpz is not None
    assert [one.host for one in settings.replica.primaries] == ["192.0.2.53", "192.0.2.54"]
    assert settings.replica.key is not None
    assert settings.replica.key.name == "transfer"
    assert len(settings.rpz.keys) == 2


LONG: Final = ".".join(["z" * 60] * 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--rpz", ""], "--rpz", id="no zone"),
        pytest.param(["--rpz", "."], "--rpz", id="the root"),
        pytest.param(["--rpz", "*.example.org"], "is a wildcard", id="a wildcard for a zone"),
        pytest.param(["--rpz", "a..b"], "a label is empty", id="an empty label"),
        pytest.param(["--rpz", "192.0.2.1"], "is an IP address", id="an address for a zone"),
        pytest.param(["--rpz", LONG], "the zone's name is too long", id="a zone without room for names"),
        pytest.param([*RPZ, "--rpz-allow", "192.0.2.1/24"], "--rpz-allow", id="a network with host bits"),
        pytest.param([*RPZ, "--rpz-allow", "example.org"], "--rpz-allow", id="a name for a network"),
        pytest.param([*RPZ, "--rpz-allow", "192.0.2.0/33"], "--rpz-allow", id="33 bits"),
        pytest.param([*RPZ, "--rpz-notify", "example.org"], "--rpz-notify", id="a name to be told"),
        pytest.param([*RPZ, "--rpz-notify", "192.0.2.1:0x35"], "--rpz-notify", id="a port that is none"),
        pytest.param([*RPZ, "--rpz-notify", "192.0.2.1:70000"], "--rpz-notify", id="port 70,000"),
        pytest.param([*RPZ, "--rpz-notify", "service:replicas"], "--rpz-notify", id="a Service without a namespace"),
        pytest.param([*RPZ, "--rpz-wildcards", "all"], "--rpz-wildcards", id="an unknown way with wildcards"),
        pytest.param([*RPZ, "--rpz-triggers", "rpz-ip"], "--rpz-triggers", id="unknown triggers"),
        pytest.param([*RPZ, "--rpz-triggers", ""], "--rpz-triggers", id="no triggers"),
        pytest.param([*RPZ, "--rpz-triggers", "names,addresses"], "--rpz-triggers", id="both triggers"),
        pytest.param([*RPZ, "--rpz-serial", "lease:dns"], "--rpz-serial", id="a Lease without a namespace"),
        pytest.param([*RPZ, "--rpz-serial", ""], "--rpz-serial", id="no place for the serial"),
        pytest.param(["--rpz-allow", "192.0.2.0/24"], "--rpz-allow is for --rpz ZONE", id="a network without a zone"),
        pytest.param(["--rpz-notify", "192.0.2.1"], "--rpz-notify is for --rpz ZONE", id="a secondary without a zone"),
        pytest.param(["--rpz-serial", "/tmp/x"], "--rpz-serial is for --rpz ZONE", id="a serial without a zone"),  # noqa: S108
        pytest.param([*RPZ, "--rpz-key", "/nowhere/key"], "No such file", id="no key file"),
        pytest.param([*RPZ, "--rpz-key", "/"], "Is a directory", id="a folder for a key"),
        pytest.param(["--source", "rpz:"], "is not rpz:ZONE@HOST:PORT", id="an empty source"),
        pytest.param(["--source", "rpz:192.0.2.1:53"], "is not rpz:ZONE@HOST:PORT", id="a source without a zone"),
        pytest.param(["--source", "rpz:@192.0.2.1"], "is not rpz:ZONE@HOST:PORT", id="an empty zone"),
        pytest.param(["--source", "rpz:a@"], "is not rpz:ZONE@HOST:PORT", id="no host"),
        pytest.param(["--source", "rpz:a.b@192.0.2.1:"], "no port after its colon", id="an empty port"),
        pytest.param(["--source", "rpz:a.b@192.0.2.1:0"], "port", id="port 0"),
        pytest.param(["--source", "rpz:a.b@2001:db8::1"], "--source", id="an IPv6 address without brackets"),
        pytest.param(["--source", "rpz:a.b@[2001:db8::1"], "is not [ADDRESS]:PORT", id="an open bracket"),
        pytest.param(["--source", "rpz:a.b@[2001:db8::1]53"], "is not [ADDRESS]:PORT", id="no colon after a bracket"),
        pytest.param(["--source", "rpz:a.b@*.example.org"], "is a wildcard, not a host", id="a wildcard for a host"),
        pytest.param(["--source", f"rpz:{LONG}@192.0.2.1"], "too long", id="a source's zone without room"),
        pytest.param(["--source", "zone"], "is none of ingress, gateway, service", id="an unknown source"),
        pytest.param(["--source", SOURCE, "--source", "ingress"], "brings the whole table", id="another source"),
        pytest.param(["--source", SOURCE, "--source", "rpz:b.org@192.0.2.1"], "must have one zone", id="two zones"),
        pytest.param(["--source", SOURCE, "--host", "a.org=192.0.2.1"], "static names belong to", id="a static name"),
        pytest.param(["--source", SOURCE, "--hosts-file", "/etc/hosts"], "static names belong to", id="a hosts file"),
        pytest.param(["--source", SOURCE, "--deny", "a.org"], "--deny: with", id="a denied name at a replica"),
        pytest.param(["--source", SOURCE, "--zone", "a.org"], "--zone: with", id="a zone of names at a replica"),
        pytest.param(["--source", SOURCE, "--allow", "a.org"], "--allow: with", id="an allowed zone at a replica"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_flag(
    made: list[ServeSettings], arguments: list[str], message: str
) -> None:
    result = invoke(*UPSTREAM, *arguments)
    assert result.exit_code == 2, result.output
    assert message in result.output
    assert arguments[-2] in result.output or arguments[0] in result.output
    assert "Traceback" not in result.output
    assert made == []


@pytest.mark.parametrize(
    ("octets", "message"),
    [
        pytest.param(b"", "there is no key statement", id="an empty file"),
        pytest.param(b"\xff\xfe", "it is not UTF-8", id="not UTF-8"),
        pytest.param(b"#" * ((1 << 20) + 1), "larger than 1 MiB", id="a huge file"),
        pytest.param(KEY.encode()[:-3], "the text ends", id="a cut file"),
        pytest.param(KEY.encode() * 2, "key transfer is there twice", id="a key twice"),
        pytest.param(SECRET.encode(), "only key statements", id="the secret alone"),
        pytest.param(KEY.replace("hmac-sha256", SECRET).encode(), "no algorithm for TSIG", id="swapped"),
        pytest.param(KEY.replace(SECRET, SECRET[:-3]).encode(), "not in base64", id="a cut secret"),
    ],
)
@pytest.mark.parametrize("flags", [RPZ, ("--source", SOURCE)], ids=["a primary", "a replica"])
def test_a_key_file_with_a_fault_is_one_line_without_the_secret(
    made: list[ServeSettings], tmp_path: Path, octets: bytes, message: str, flags: tuple[str, ...]
) -> None:
    key = tmp_path / "key"
    key.write_bytes(octets)
    result = invoke(*UPSTREAM, *flags, "--rpz-key", str(key))
    assert result.exit_code == 2
    assert message in result.output
    assert f"--rpz-key {key}" in result.output
    assert SECRET[:8] not in result.output
    assert made == []


def test_a_key_file_that_may_not_be_read_is_one_line(made: list[ServeSettings], tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read every file")
    key = tmp_path / "key"
    key.touch(mode=0)
    result = invoke(*UPSTREAM, *RPZ, "--rpz-key", str(key))
    assert (result.exit_code, "Permission denied" in result.output) == (2, True)
    assert made == []


def test_the_lease_is_named_by_namespace_and_name(made: list[ServeSettings]) -> None:
    result = invoke(*UPSTREAM, *RPZ, "--rpz-serial", "lease:dns/zone", "--rpz-address", "192.0.2.1:53")
    assert result.exit_code == 0, result.output
    assert made[0].rpz is not None
    assert made[0].rpz.serial == LeaseRef(ObjectRef("dns", "zone"))


def test_a_key_without_a_zone_and_a_primary_is_a_mistake(made: list[ServeSettings], tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(KEY, encoding="utf-8")
    result = invoke(*UPSTREAM, "--rpz-key", str(key))
    assert (result.exit_code, made) == (2, [])
    assert "--rpz-key is for --rpz ZONE and for --source rpz:" in result.output
