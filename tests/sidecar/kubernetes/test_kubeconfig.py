"""Kubeconfig files: one table over both readers, ours and the package `kubernetes`; then where the package departs."""

from __future__ import annotations

import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from sidecar.kubernetes.cluster import ClusterConfigError, Tls
from sidecar.kubernetes.kubeconfig import load_kubeconfig
from sidecar.kubernetes.kubeconfig_plugin import read_package_authorization, read_with_package
from tests.sidecar.kubernetes.test_kubeconfig_selection import document

SERVER = "https://192.0.2.1:6443"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a reader makes of files."""

    authorization: str | None
    tls: Tls
    server: str = SERVER
    proxy: str | None = None


def read_plain(files: str, context: str) -> Answer:
    cluster = load_kubeconfig(files, context=context)
    assert not cluster.blocks
    return Answer(cluster.read_authorization(), cluster.tls, cluster.server, cluster.proxy)


def read_by_package(files: str, context: str) -> Answer:
    configuration, tls = read_with_package(files, context=context, source=files)
    authorization = read_package_authorization(configuration, files)
    return Answer(authorization, tls, configuration.host, configuration.proxy or None)


Read = Callable[[str, str], Answer]
READERS = pytest.mark.parametrize("read", [read_plain, read_by_package], ids=["plain", "package"])


@dataclass(frozen=True, slots=True)
class Pair:
    """An authority, and a client's certificate with its key, in files of a folder."""

    ca: str
    certificate: str
    key: str


@pytest.fixture(scope="module")
def pair() -> Pair:
    authority = trustme.CA()
    client = authority.issue_cert("client.example.org")
    parts = (authority.cert_pem, client.cert_chain_pems[0], client.private_key_pem)
    return Pair(*(part.bytes().decode() for part in parts))


def write_files(folder: Path, pair: Pair) -> None:
    for name, text in {"ca.crt": pair.ca, "c.crt": pair.certificate, "c.key": pair.key, "token": "filed\n"}.items():
        (folder / name).write_text(text)


def encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def write(path: Path, content: object) -> str:
    path.write_text(yaml.safe_dump(content))
    return str(path)


GOOD: dict[str, tuple[dict[str, Any], Callable[[Pair], Answer]]] = {
    "token": ({}, lambda _: Answer("Bearer secret", Tls())),
    "anonymous": ({"user": {}}, lambda _: Answer(None, Tls())),
    "empty token": ({"user": {"token": ""}}, lambda _: Answer(None, Tls())),
    "context without user": (
        {"contexts": [{"name": "home", "context": {"cluster": "c"}}]},
        lambda _: Answer(None, Tls()),
    ),
    "token's file": ({"user": {"tokenFile": "token"}}, lambda _: Answer("Bearer filed", Tls())),
    "name and password": ({"user": {"username": "a", "password": "b"}}, lambda _: Answer("Basic YTpi", Tls())),
    "authority's file": (
        {"cluster": {"certificate-authority": "ca.crt"}},
        lambda pair: Answer("Bearer secret", Tls(ca=pair.ca)),
    ),
    "client certificate": (
        {"user": {"client-certificate": "c.crt", "client-key": "c.key"}},
        lambda pair: Answer(None, Tls(certificate=pair.certificate, key=pair.key)),
    ),
    "certificate and token": (
        {"user": {"client-certificate": "c.crt", "client-key": "c.key", "token": "secret"}},
        lambda pair: Answer("Bearer secret", Tls(certificate=pair.certificate, key=pair.key)),
    ),
    "insecure": ({"cluster": {"insecure-skip-tls-verify": True}}, lambda _: Answer("Bearer secret", Tls(verify=False))),
    "not insecure": ({"cluster": {"insecure-skip-tls-verify": False}}, lambda _: Answer("Bearer secret", Tls())),
    "server's name": (
        {"cluster": {"tls-server-name": "api.example.org"}},
        lambda _: Answer("Bearer secret", Tls(server_name="api.example.org")),
    ),
    "proxy": (
        {"cluster": {"proxy-url": "http://192.0.2.3:3128"}},
        lambda _: Answer("Bearer secret", Tls(), proxy="http://192.0.2.3:3128"),
    ),
    "final slash": (
        {"cluster": {"server": f"{SERVER}/prefix/"}},
        lambda _: Answer("Bearer secret", Tls(), server=f"{SERVER}/prefix"),
    ),
    "http": (
        {"cluster": {"server": "http://192.0.2.1", "certificate-authority": "ca.crt"}},
        lambda _: Answer("Bearer secret", Tls(), server="http://192.0.2.1"),
    ),
    "unknown keys": (
        {"extensions": [{"name": "x", "extension": {"y": [1]}}]},
        lambda _: Answer("Bearer secret", Tls()),
    ),
}


@pytest.mark.parametrize(("changes", "expected"), GOOD.values(), ids=GOOD.keys())
def test_both_readers_agree(
    tmp_path: Path, pair: Pair, changes: dict[str, Any], expected: Callable[[Pair], Answer]
) -> None:
    write_files(tmp_path, pair)
    path = write(tmp_path / "config", document(**changes))
    assert read_plain(path, "home") == expected(pair)
    assert read_by_package(path, "home") == expected(pair)


@READERS
def test_both_readers_decode_data(tmp_path: Path, pair: Pair, read: Read) -> None:
    user = {"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(pair.key)}
    cluster = {"certificate-authority-data": encoded(pair.ca)}
    path = write(tmp_path / "config", document(cluster=cluster, user=user))
    assert read(path, "home") == Answer(None, Tls(ca=pair.ca, certificate=pair.certificate, key=pair.key))


@READERS
def test_both_readers_merge_files(tmp_path: Path, pair: Pair, read: Read) -> None:
    """The second has the cluster, with a path beside itself; one is missing."""
    (tmp_path / "sub").mkdir()
    write_files(tmp_path / "sub", pair)
    first = write(tmp_path / "one", document(clusters=[]))
    other = document(cluster={"certificate-authority": "ca.crt"}, user={"token": "other"})
    second = write(tmp_path / "sub" / "two", other)
    assert read(f"{first}:{tmp_path / 'none'}::{second}", "home") == Answer("Bearer secret", Tls(ca=pair.ca))


@READERS
def test_both_readers_take_yaml_with_aliases(tmp_path: Path, read: Read) -> None:
    path = tmp_path / "config"
    path.write_text(
        "clusters: [{name: c, cluster: &c {server: 'https://192.0.2.9'}}, {name: d, cluster: {<<: *c}}]\n"
        "contexts: [{name: home, context: {cluster: d}}]\n"
    )
    assert read(str(path), "home").server == "https://192.0.2.9"


BAD_FILES: dict[str, dict[str, Any]] = {
    "no such authority": {"cluster": {"certificate-authority": "none"}},
    "authority is a folder": {"cluster": {"certificate-authority": "."}},
    "no such certificate": {"user": {"client-certificate": "none", "client-key": "c.key"}},
    "no such key": {"user": {"client-certificate": "c.crt", "client-key": "none"}},
    "no such token": {"user": {"tokenFile": "none"}},
    "no such cluster": {"clusters": []},
    "not base64": {"cluster": {"certificate-authority-data": "a"}},
}


@READERS
@pytest.mark.parametrize("changes", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_neither_reader_takes(tmp_path: Path, pair: Pair, read: Read, changes: dict[str, Any]) -> None:
    write_files(tmp_path, pair)
    path = write(tmp_path / "config", document(**changes))
    with pytest.raises(ClusterConfigError, match=path):
        read(path, "home")


# Where the package departs from client-go


def test_a_tokens_file_wins_over_the_token_beside_it(tmp_path: Path) -> None:
    """As long as it has one. It is read each time, because it may be renewed."""
    cluster = load_kubeconfig(
        write(tmp_path / "config", document(user={"token": "secret", "tokenFile": "token"})), context=None
    )
    assert cluster.read_authorization() == "Bearer secret"
    for content, expected in (("filed\n", "filed"), ("renewed", "renewed"), ("\n", "secret"), ("a\nb", "secret")):
        (tmp_path / "token").write_text(content)
        assert cluster.read_authorization() == f"Bearer {expected}"


def test_a_clients_certificate_is_beside_the_file_that_has_the_user(tmp_path: Path, pair: Pair) -> None:
    """The package looks beside the file that has the cluster."""
    (tmp_path / "sub").mkdir()
    write_files(tmp_path / "sub", pair)
    first = write(tmp_path / "one", document(users=[]))
    second = write(tmp_path / "sub" / "two", document(user={"client-certificate": "c.crt", "client-key": "c.key"}))
    assert load_kubeconfig(f"{first}:{second}", context=None).tls.certificate == pair.certificate


@pytest.mark.parametrize(
    ("user", "text"),
    [
        pytest.param({"username": "a"}, "a:", id="no password"),
        pytest.param({"username": "\u20ac", "password": "\u00e4"}, "\u20ac:\u00e4", id="UTF-8"),
    ],
)
def test_a_name_is_sent_as_kubectl_sends_it(tmp_path: Path, user: dict[str, str], text: str) -> None:
    path = write(tmp_path / "config", document(user=user))
    assert load_kubeconfig(path, context=None).read_authorization() == f"Basic {encoded(text)}"


def test_a_user_that_is_null_is_anonymous(tmp_path: Path) -> None:
    path = write(tmp_path / "config", document(user=None))
    assert load_kubeconfig(path, context=None).read_authorization() is None


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param("", "contains no token", id="empty"),
        pytest.param("a\nb", "contains no token", id="two lines"),
        pytest.param("\u00e9", "contains no token", id="not ASCII"),
        pytest.param(None, "No such file", id="missing"),
    ],
)
def test_a_tokens_bad_file_is_named_with_its_key(tmp_path: Path, content: str | None, reason: str) -> None:
    if content is not None:
        (tmp_path / "token").write_text(content)
    path = write(tmp_path / "config", document(user={"tokenFile": "token"}))
    with pytest.raises(ClusterConfigError, match=f"{path}: tokenFile of 'u': {tmp_path / 'token'}.*{reason}"):
        load_kubeconfig(path, context=None)


def test_a_key_of_another_certificate_is_refused(tmp_path: Path, pair: Pair) -> None:
    other = trustme.CA().issue_cert("other.example.org").private_key_pem.bytes().decode()
    user = {"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(other)}
    path = write(tmp_path / "config", document(user=user))
    with pytest.raises(ClusterConfigError, match="config, context home: unusable certificate or key"):
        load_kubeconfig(path, context=None)


def test_a_path_with_a_null_character_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "config", document(cluster={"certificate-authority": "a\0b"}))
    with pytest.raises(ClusterConfigError, match=r"certificate-authority of 'c': .*null"):
        load_kubeconfig(path, context=None)


def test_empty_files_are_skipped_and_a_file_without_a_context_is_not_enough(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    path = write(tmp_path / "config", document())
    assert load_kubeconfig(f"{tmp_path / 'empty'}:{path}", context=None).server == SERVER
    with pytest.raises(ClusterConfigError, match="empty has no current-context"):
        load_kubeconfig(str(tmp_path / "empty"), context=None)


def test_a_file_in_another_encoding_is_named(tmp_path: Path) -> None:
    (tmp_path / "config").write_bytes("current-context: caf\u00e9".encode("latin-1"))
    with pytest.raises(ClusterConfigError, match=r"config is not a kubeconfig: .*UTF-8"):
        load_kubeconfig(str(tmp_path / "config"), context=None)


def test_the_package_stays_away(tmp_path: Path) -> None:
    """It takes 0.3 s of processor time and 30 MB."""
    path = write(tmp_path / "config", document())
    script = (
        "import sys; from sidecar.kubernetes.config import load_cluster;"
        f"load_cluster(kubeconfig={path!r}).read_authorization();"
        "sys.exit(bool({'kubernetes', 'requests', 'urllib3'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize(
    "script", ["head -c 200000 /dev/zero | tr '\\0' x >&2; exit 1", "head -c 200000 /dev/zero | tr '\\0' x"]
)
def test_what_a_plugin_says_at_length_is_cut(tmp_path: Path, script: str) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!/bin/sh\n{script}\n")
    plugin.chmod(0o755)
    user = {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    }
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(document(user=user)))
    with pytest.raises(ClusterConfigError) as error:
        load_kubeconfig(str(path), context=None)
    assert len(str(error.value)) < 700 + 2 * len(str(tmp_path))
