"""What a container starts of ours: by itself, in a shell, through wrappers and variables."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.install.run.container_commands import config_maps_of, started_by
from sidecar.kubernetes.structs.workload import Container


def container(*words: str, env: dict[str, str | None] | None = None) -> Container:
    listed = [{"name": name, "value": value} for name, value in (env or {}).items()]
    return msgspec.convert({"name": "main", "command": list(words), "env": listed}, Container)


def started(*words: str, env: dict[str, str | None] | None = None) -> list[str]:
    """The commands; in brackets those that leave the cluster's DNS alone."""
    found = started_by(container(*words, env=env))
    return [one.command if one.writes else f"({one.command})" for one in found]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("exec /usr/bin/dnsproxy install --watch", ["install"]),
        ("while true; do dnsproxy install; sleep 60; done", ["install"]),
        ("dnsproxy status; exec dnsproxy operate", ["operate"]),
        ("dnsproxy serve & exec dnsproxy operate", ["operate"]),
        ("cd /opt/dnsproxy && ./bin/dnsproxy operate", ["operate"]),
        ("dnsproxy install --dry-run && exec dnsproxy install --watch", ["(install)", "install"]),
        ("dnsproxy install --file X && exec dnsproxy operate", ["(install)", "operate"]),
        ('exec "dnsproxy" operate', ["operate"]),
        ("(dnsproxy operate)", ["operate"]),
        ("dnsproxy \\\n  operate", ["operate"]),
        ("set -e\ndnsproxy status\ndnsproxy operate\n", ["operate"]),
        ("sh -c 'exec dnsproxy operate'", ["operate"]),
        ("dnsproxy operate 'without its end", ["operate"]),
        ("kubectl switchback operate", ["operate"]),
        ("kubectl get pods; echo operate", []),
        ("echo dnsproxy; operate", []),
        ("dnsproxy explain install.example.org", []),
        ("dnsproxy uninstall --operate switchback/operate", []),
    ],
)
def test_each_command_of_a_shell_is_looked_at(script: str, expected: list[str]) -> None:
    assert started("/bin/sh", "-c", script) == expected


@pytest.mark.parametrize(
    ("words", "env", "expected"),
    [
        (("dnsproxy", "operate"), {}, ["operate"]),
        (("python3", "/opt/switchback.pyz", "operate"), {}, ["operate"]),
        (("kubectl-switchback", "install"), {}, ["install"]),
        (("kubectl", "switchback", "install"), {}, ["install"]),
        (("dnsproxy", "$(COMMAND)"), {"COMMAND": "operate"}, ["operate"]),
        (("$(BIN)", "operate"), {"BIN": "/usr/bin/dnsproxy"}, ["operate"]),
        (("$(BIN)", "operate"), {}, []),
        (("dnsproxy", "operate"), {"DNSPROXY_METHOD": "print"}, ["(operate)"]),
        (("dnsproxy", "operate", "--method", "corefile"), {"DNSPROXY_METHOD": "print"}, ["operate"]),
        (("dnsproxy", "operate", "--method", "print", "--method=corefile"), {}, ["operate"]),
        (("dnsproxy", "operate", "--method=corefile", "--method", "print"), {}, ["(operate)"]),
        (("dnsproxy", "operate", "--method"), {}, ["operate"]),
        (("dnsproxy", "operate"), {"DNSPROXY_METHOD": None}, ["operate"]),
        (("dnsproxy", "install", "--file=Corefile"), {}, ["(install)"]),
        (("dnsproxy",), {}, []),
        (("dnsproxy", "serve"), {}, []),
        (("",), {}, []),
        ((), {}, []),
    ],
)
def test_a_command_line_is_read_with_its_variables(
    words: tuple[str, ...], env: dict[str, str | None], expected: list[str]
) -> None:
    assert started(*words, env=env) == expected


def test_a_variable_of_a_config_map_is_weaker_than_the_containers_own() -> None:
    maps = {"DNSPROXY_METHOD": "print"}
    (by_map,) = started_by(container("dnsproxy", "operate"), maps)
    (own,) = started_by(container("dnsproxy", "operate", env={"DNSPROXY_METHOD": "corefile"}), maps)
    assert (by_map.writes, own.writes) == (False, True)


def test_only_references_to_config_maps_are_read() -> None:
    refs = [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "b"}}, {"configMapRef": None}, {"configMapRef": {}}]
    assert config_maps_of(msgspec.convert({"name": "main", "envFrom": refs}, Container)) == ("a",)
    assert config_maps_of(container()) == ()


PARTS = ["dnsproxy ", "operate", "'", '"', "\\", ";", "&", "\n", "$(", ")", " "]


@given(st.lists(st.lists(st.sampled_from(PARTS)).map("".join)))
def test_no_command_line_is_too_strange(words: list[str]) -> None:
    assert set(started(*words)) <= {"operate"}
