from __future__ import annotations

from typing import Any

import pytest

from dnsproxy.cluster_dns.arguments import (
    corefile_path,
    flags_of,
    local_addresses,
    stub_domains_path,
    template_path,
    upstream_service,
)
from sidecar.kubernetes.structs.workload import Container, EnvVar


def container(*args: str, **fields: Any) -> Container:
    return Container(name="dns", args=args, **fields)


@pytest.mark.parametrize(
    ("args", "path"),
    [
        (["-conf", "/etc/coredns/Corefile"], "/etc/coredns/Corefile"),
        (["--conf", "/etc/coredns/Corefile"], "/etc/coredns/Corefile"),
        (["-conf=/etc/x/Corefile"], "/etc/x/Corefile"),
        (["--conf=/x"], "/x"),
        (["-conf", "/a/../b//Corefile"], "/b/Corefile"),
        (["-conf=/a", "-conf=/b"], "/b"),
        (["-dns.port", "1053", "-quiet", "-conf", "/c"], "/c"),
        (["-quiet=true", "-conf", "/c"], "/c"),
        (["-p", "-conf", "-conf", "/c"], "/c"),
        (["-conf", "custom/Corefile"], "/custom/Corefile"),
        ([], "/Corefile"),
        (["-conf", ""], "/Corefile"),
        (["-conf"], "/Corefile"),
        (["-conf="], "/Corefile"),
        # flag.Parse stops at the first word that is no flag, and CoreDNS then refuses to start.
        (["run", "-conf", "/never"], "/Corefile"),
        (["--", "-conf", "/never"], "/Corefile"),
        (["-", "-conf", "/never"], "/Corefile"),
        (["-CONF", "/never"], "/Corefile"),
        (["-config", "/never"], "/Corefile"),
    ],
    ids=" ".join,
)
def test_the_corefile_is_the_one_that_gos_flags_name(args: list[str], path: str) -> None:
    assert corefile_path(container(*args)) == path


def test_the_command_counts_before_the_arguments() -> None:
    found = container("-conf", "/b", command=("/coredns", "-conf", "/a", "-quiet"))
    assert corefile_path(found) == "/b"
    assert corefile_path(Container(name="dns", command=("/coredns", "-conf=/a"))) == "/a"
    assert corefile_path(Container(name="dns")) == "/Corefile"


def test_a_relative_path_begins_at_the_working_directory() -> None:
    assert corefile_path(container(working_dir="/srv/dns")) == "/srv/dns/Corefile"
    assert corefile_path(container("-conf", "../Corefile", working_dir="/srv/dns")) == "/srv/Corefile"


@pytest.mark.parametrize(
    ("argument", "path"),
    [
        ("$(DIR)/Corefile", "/etc/dns/Corefile"),
        ("$(DIR)$(EMPTY)/x", "/etc/dns/x"),
        ("/a$$(DIR)/x", None),
        ("/$$/x", "/$/x"),
        ("/$DIR/x", "/$DIR/x"),
        ("$(SECRET)/Corefile", None),
        ("$(NOWHERE)/Corefile", None),
    ],
)
def test_variables_are_put_in_as_kubernetes_does(argument: str, path: str | None) -> None:
    env = (EnvVar("DIR", "/etc/dns"), EnvVar("EMPTY", ""), EnvVar("SECRET"))
    found = container("-conf", argument, env=env)
    if path is None:
        with pytest.raises(ValueError, match="variable"):
            corefile_path(found)
    else:
        assert corefile_path(found) == path


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (container("-c", "exec coredns -conf /x", command=("/bin/sh",)), "starts a shell"),
        (Container(name="dns", command=("/usr/bin/env", "coredns")), "starts a shell"),
        (container("-conf", "stdin"), "stdin"),
    ],
)
def test_what_cannot_be_known_is_said_to_be(found: Container, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        corefile_path(found)


def test_node_cache_has_flags_of_its_own() -> None:
    args = ["-localip", "169.254.20.10,10.96.0.10", "-conf", "/etc/Corefile", "-skipteardown", "-kubednscm", "/k"]
    found = container(*args, "-upstreamsvc=dns-upstream", "-basecorefile", "/t/base")
    assert template_path(found) == "/t/base"
    assert stub_domains_path(found) == "/k"
    assert upstream_service(found) == "dns-upstream"
    assert local_addresses(found) == ("169.254.20.10", "10.96.0.10")
    bare = container("-localip=")
    assert (template_path(bare), stub_domains_path(bare)) == ("/etc/coredns/Corefile.base", "/etc/kube-dns")
    assert (upstream_service(bare), local_addresses(bare)) == ("kube-dns", ())


def test_kube_dns_names_its_folder_in_another_flag() -> None:
    assert stub_domains_path(container("--domain=cluster.local.", "--config-dir=/kube-dns-config", "--v=2")) == (
        "/kube-dns-config"
    )


def test_a_switch_takes_no_word() -> None:
    assert flags_of(container("-quiet", "-p", "53")) == {"quiet": "true", "p": "53"}
