"""Finding the cluster, through config.py, kubeconfig.py and cluster.py: in a pod, and by good and bad kubeconfigs."""

from __future__ import annotations

import base64
import json
import logging
import ssl
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trio
import yaml

from sidecar.kubernetes import config
from sidecar.kubernetes.cluster import Cluster, ClusterConfigError, Tls, could_not_ask
from sidecar.kubernetes.config import find_cluster, load_cluster
from sidecar.kubernetes.errors import Forbidden
from sidecar.values.errors import StartError
from tests.kit.faulty_api import AUTHORITY
from tests.sidecar.kubernetes.test_http import write_service_account

CA_DATA = base64.b64encode(AUTHORITY.encode()).decode()


def write_kubeconfig(path: Path, **changes: Any) -> Path:
    """A kubeconfig with the context `home`; `cluster` and `user` go into it, other keys stand as they are."""
    cluster = {"server": "https://192.0.2.1:6443", "certificate-authority-data": CA_DATA} | changes.pop("cluster", {})
    config = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": changes.pop("user", {"token": "secret"})}],
        "contexts": [{"name": "home", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}],
        "current-context": "home",
    }
    path.write_text(yaml.safe_dump(config | changes))
    return path


def load(path: object, *, context: str | None = None) -> Any:
    return load_cluster(kubeconfig=str(path), context=context, environment={})


# In a pod


@pytest.mark.parametrize(
    ("host", "port", "server"),
    [
        ("10.96.0.1", "443", "https://10.96.0.1:443"),
        ("2001:db8::1", "6443", "https://[2001:db8::1]:6443"),
        ("api.example.org", "", "https://api.example.org:443"),
    ],
    ids=["v4", "v6", "name-without-port"],
)
def test_pod_finds_its_own_cluster(tmp_path: Path, host: str, port: str, server: str) -> None:
    """By two variables and three files."""
    write_service_account(tmp_path, token="secret\n")
    environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "KUBECONFIG": ""}
    cluster = load_cluster(environment=environment, service_account=tmp_path)
    assert cluster.server == server
    assert cluster.read_authorization() == "Bearer secret"
    assert cluster.tls == Tls(ca=AUTHORITY)
    assert cluster.namespace == "switchback"
    assert not cluster.trust_env
    assert "secret" not in repr(cluster)


def test_pod_does_without_the_kubernetes_package(tmp_path: Path) -> None:
    """Nor does it read YAML."""
    write_service_account(tmp_path, token="secret")
    script = (
        "import sys, pathlib; from sidecar.kubernetes.config import load_cluster; import dnsproxy.sources.followers;"
        "load_cluster(environment={'KUBERNETES_SERVICE_HOST': '192.0.2.1'},"
        f" service_account=pathlib.Path({str(tmp_path)!r}));"
        "sys.exit(bool({'kubernetes', 'yaml'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


MARK = "\ufeff"
COMMENT = "# Autorit\u00e9 de certification\n"


@pytest.mark.parametrize("added", [MARK, COMMENT, MARK + COMMENT], ids=["byte order mark", "comment", "both"])
def test_text_around_the_certificates_is_no_fault(tmp_path: Path, added: str) -> None:
    """Bundles have the names of their authorities in comments."""
    write_service_account(tmp_path, token="secret")
    (tmp_path / "ca.crt").write_text(added + AUTHORITY, encoding="utf-8")
    inside = load_cluster(environment={"KUBERNETES_SERVICE_HOST": "192.0.2.1"}, service_account=tmp_path)
    cluster = {"server": "https://192.0.2.2", "certificate-authority": str(tmp_path / "ca.crt")}
    by_file = load(write_kubeconfig(tmp_path / "config", clusters=[{"name": "c", "cluster": cluster}]))
    for one in (inside, by_file):
        assert len(one.tls.make_context().get_ca_certs()) == 1


def test_a_byte_order_mark_is_no_part_of_token_or_namespace(tmp_path: Path) -> None:
    write_service_account(tmp_path, token=f"{MARK}secret\n")
    (tmp_path / "namespace").write_text(f"{MARK}edge\n", encoding="utf-8")
    cluster = load_cluster(environment={"KUBERNETES_SERVICE_HOST": "192.0.2.1"}, service_account=tmp_path)
    assert (cluster.read_authorization(), cluster.namespace) == ("Bearer secret", "edge")


def test_a_kubeconfig_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config")
    path.write_text(MARK + path.read_text(), encoding="utf-8")
    assert load(path).server == load(write_kubeconfig(tmp_path / "other")).server


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("token", None, "token: No such file"),
        ("token", "", "contains no token"),
        ("token", "a\nb", "contains no token"),
        ("ca.crt", None, "ca.crt: No such file"),
        ("ca.crt", "nonsense", "ca.crt: unusable certificate"),
        ("ca.crt", "", "ca.crt: unusable certificate"),
    ],
    ids=["no-token", "empty-token", "two-lines", "no-ca", "bad-ca", "empty-ca"],
)
def test_broken_service_account_is_told_in_one_line(
    tmp_path: Path, name: str, content: str | None, reason: str
) -> None:
    """With the file's name."""
    write_service_account(tmp_path, token="secret")
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(ClusterConfigError, match=reason) as caught:
        load_cluster(environment={"KUBERNETES_SERVICE_HOST": "192.0.2.1"}, service_account=tmp_path)
    assert "\n" not in str(caught.value)


def test_explicit_kubeconfig_beats_the_pod(tmp_path: Path) -> None:
    """A flag or KUBECONFIG is somebody's will; being in a pod is an accident."""
    path = write_kubeconfig(tmp_path / "config")
    inside = {"KUBERNETES_SERVICE_HOST": "192.0.2.9"}
    for arguments, environment in [({"kubeconfig": str(path)}, inside), ({}, inside | {"KUBECONFIG": str(path)})]:
        cluster = load_cluster(**arguments, environment=environment, service_account=tmp_path)
        assert cluster.server == "https://192.0.2.1:6443"


# By kubeconfig


def test_kubeconfig_is_read(tmp_path: Path) -> None:
    """Everything that a cluster entry may say."""
    options = {"tls-server-name": "api.example.org", "proxy-url": "http://proxy.example.org:3128"}
    cluster = load(write_kubeconfig(tmp_path / "config", cluster=options))
    assert cluster.tls == Tls(ca=AUTHORITY, server_name="api.example.org")
    assert cluster.proxy == "http://proxy.example.org:3128"
    assert cluster.namespace == "shop"
    assert cluster.read_authorization() == "Bearer secret"
    assert cluster.origin.endswith("config, context home")
    assert not cluster.blocks


def test_verification_is_off_only_where_the_file_says_so(tmp_path: Path) -> None:
    """The context for OpenSSL follows."""
    insecure = {"insecure-skip-tls-verify": True, "certificate-authority-data": ""}
    tls = load(write_kubeconfig(tmp_path / "config", cluster=insecure)).tls
    assert tls.make_context().verify_mode == ssl.CERT_NONE
    tls = load(write_kubeconfig(tmp_path / "config")).tls
    assert tls.make_context().verify_mode == ssl.CERT_REQUIRED


def test_proxy_of_the_environment_is_left_to_the_http_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows NO_PROXY too."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.org:3128")
    cluster = load(write_kubeconfig(tmp_path / "config"))
    assert cluster.proxy is None
    assert cluster.trust_env


def test_files_of_kubeconfig_are_merged(tmp_path: Path) -> None:
    """One has the context, another the cluster, with a path relative to itself; one does not exist."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "ca.crt").write_text(AUTHORITY)
    cluster = {"server": "https://192.0.2.2", "certificate-authority": "ca.crt"}
    (tmp_path / "sub" / "two").write_text(yaml.safe_dump({"clusters": [{"name": "d", "cluster": cluster}]}))
    contexts = [{"name": "away", "context": {"cluster": "d", "user": "u"}}]
    first = write_kubeconfig(tmp_path / "one", contexts=contexts, **{"current-context": "away"})
    loaded = load(f"{first}:{tmp_path / 'none'}:{tmp_path / 'sub' / 'two'}")
    assert loaded.server == "https://192.0.2.2"
    assert loaded.tls.ca == AUTHORITY
    assert loaded.namespace == "default"


def test_token_file_without_its_newline(tmp_path: Path) -> None:
    """And again after it rotated, when the server refuses the old one."""
    (tmp_path / "token").write_text("first\n")
    cluster = load(write_kubeconfig(tmp_path / "config", user={"tokenFile": "token"}))
    assert cluster.read_authorization() == "Bearer first"
    (tmp_path / "token").write_text("second\n")
    assert cluster.reload().read_authorization() == "Bearer second"


def write_plugin(folder: Path, body: str) -> dict[str, Any]:
    """A credential plugin; it leaves a line in `runs` each time."""
    plugin = folder / "plugin"
    plugin.write_text(f"#!/bin/sh\necho run >> {folder / 'runs'}\n{body}\n")
    plugin.chmod(0o755)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "args": ["a"]}}


def credential(status: Mapping[str, str]) -> str:
    document = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": dict(status)}
    return f"cat <<'END'\n{json.dumps(document)}\nEND"


def test_plugin_is_run_again_only_when_its_token_ends(tmp_path: Path) -> None:
    """It may take a second and a round trip to a cloud."""
    user = write_plugin(tmp_path, credential({"token": "fresh", "expirationTimestamp": "2999-01-01T00:00:00Z"}))
    cluster = load(write_kubeconfig(tmp_path / "config", user=user))
    assert cluster.blocks
    for _ in range(3):
        assert cluster.read_authorization() == "Bearer fresh"
    assert (tmp_path / "runs").read_text().count("run") == 1
    user = write_plugin(tmp_path, credential({"token": "stale", "expirationTimestamp": "2020-01-01T00:00:00Z"}))
    cluster = load(write_kubeconfig(tmp_path / "config", user=user))
    assert cluster.read_authorization() == "Bearer stale"
    assert (tmp_path / "runs").read_text().count("run") == 3


BAD_PLUGINS = {
    "fails": ("echo no session >&2; exit 3", "no session"),
    "garbage": ("echo hello", "failed to decode"),
    "nothing": (credential({}), "missing token"),
    "other-version": (credential({"token": "x"}).replace("io/v1", "io/v1beta1"), "v1beta1 does not match"),
}


@pytest.mark.parametrize(("body", "reason"), BAD_PLUGINS.values(), ids=BAD_PLUGINS.keys())
def test_failing_plugin_is_one_error(tmp_path: Path, body: str, reason: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The package logs it, sets up logging for the whole program, and goes on without credentials."""
    handlers = list(logging.getLogger().handlers)
    path = write_kubeconfig(tmp_path / "config", user=write_plugin(tmp_path, body))
    with pytest.raises(ClusterConfigError, match=reason):
        load(path)
    assert logging.getLogger().handlers == handlers
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({}, "'no-such-plugin'; install no-such-plugin, which gives the credentials$"),
        ({"installHint": "See example.org\n to get it"}, "'no-such-plugin'; See example.org to get it$"),
        ({"command": "./no-such-plugin"}, "no-such-plugin'$"),
        ({"command": "true", "installHint": "unneeded"}, "decode[^;]*$"),
    ],
    ids=["without a hint", "with a hint", "a path", "a program that is there"],
)
def test_a_missing_plugin_is_named_with_what_to_do(tmp_path: Path, changes: dict[str, str], hint: str) -> None:
    """The commonest fault of all."""
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin", **changes}}
    with pytest.raises(ClusterConfigError, match=hint):
        load(write_kubeconfig(tmp_path / "config", user=user))


@pytest.mark.parametrize(
    ("cause", "from_kubeconfig", "ending"),
    [
        ("refused", True, "; if kubectl cannot either, start the cluster, log in again, or choose another --context"),
        (Forbidden("403: no"), True, "; ask for this right, or choose another --context"),
        ("refused", False, ""),
        (Forbidden("403: no"), False, ""),
    ],
    ids=["a kubeconfig", "no right", "a pod, which has no kubectl", "a pod without a right"],
)
def test_a_server_that_does_not_answer_is_named_with_what_to_do(
    cause: object, from_kubeconfig: bool, ending: str
) -> None:
    cluster = Cluster("https://192.0.2.1", "file", lambda: None, lambda: cluster, trust_env=from_kubeconfig)
    said = could_not_ask(cluster, cause)
    assert said == f"the API server at https://192.0.2.1 (file) could not be asked: {cause}{ending}"


BAD_FILES = {
    "no-yaml": ("{", "is not a kubeconfig"),
    "tabs": ("clusters:\n\t- a", "is not a kubeconfig"),
    "binary": ("\x00\x01", "is not a kubeconfig"),
    "a-list": ("- a", "is not a kubeconfig"),
    "a-text": ("hello", "is not a kubeconfig"),
    "clusters-a-text": ("clusters: hello", r"\$.clusters"),
    "cluster-without-name": ("clusters: [{cluster: {}}]", "name"),
    "empty": ("", "no current-context.*: none"),
    "only-nulls": ("clusters:\ncontexts:\nusers:\n", "no current-context"),
}


@pytest.mark.parametrize(("content", "reason"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_file_that_is_no_kubeconfig_is_named(tmp_path: Path, content: str, reason: str) -> None:
    """In one line, with what is wrong."""
    path = tmp_path / "broken.yaml"
    path.write_text(content)
    with pytest.raises(ClusterConfigError, match=reason) as caught:
        load(path)
    assert "broken.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


BAD_ENTRIES: dict[str, tuple[dict[str, Any], str]] = {
    "unknown-cluster": (
        {"contexts": [{"name": "home", "context": {"cluster": "x"}}]},
        "context 'home': no cluster 'x' in clusters: c",
    ),
    "no-cluster-in-context": ({"contexts": [{"name": "home", "context": {}}]}, "cluster"),
    "no-server": ({"cluster": {"server": None}}, "server|URL"),
    "server-absent": ({"clusters": [{"name": "c", "cluster": {}}]}, "server '' is not an http"),
    "server-without-scheme": ({"cluster": {"server": "192.0.2.1:6443"}}, "not an http or https URL"),
    "server-is-a-number": ({"cluster": {"server": 6443}}, "server"),
    "ca-not-base64": (
        {"cluster": {"certificate-authority-data": "%%%"}},
        "certificate-authority-data of 'c' is not base64",
    ),
    "ca-no-certificate": ({"cluster": {"certificate-authority-data": "aGVsbG8="}}, "unusable certificate"),
    "ca-file-missing": (
        {"clusters": [{"name": "c", "cluster": {"server": "https://192.0.2.1", "certificate-authority": "none.crt"}}]},
        "none.crt",
    ),
    "socks-proxy": ({"cluster": {"proxy-url": "socks5://192.0.2.1:1080"}}, "only http and https proxies"),
    "removed-provider": ({"user": {"auth-provider": {"name": "gcp"}}}, "exec plugin"),
    "key-no-key": ({"user": {"client-certificate-data": CA_DATA, "client-key-data": CA_DATA}}, "unusable certificate"),
    "token-file-missing": ({"user": {"tokenFile": "none"}}, "none"),
    "exec-without-command": ({"user": {"exec": {"apiVersion": "v1"}}}, "command"),
}


@pytest.mark.parametrize(("changes", "reason"), BAD_ENTRIES.values(), ids=BAD_ENTRIES.keys())
def test_bad_entry_is_told_with_its_file(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    """Never a traceback, and never a start that fails later."""
    path = write_kubeconfig(tmp_path / "broken.yaml", **changes)
    with pytest.raises(ClusterConfigError, match=reason) as caught:
        load(path)
    assert "broken.yaml" in str(caught.value)


def test_unknown_context_lists_those_there_are(tmp_path: Path) -> None:
    """So that the next try is right."""
    path = write_kubeconfig(tmp_path / "config")
    with pytest.raises(ClusterConfigError, match="no context 'hme'; it has: home"):
        load(path, context="hme")


def test_the_home_of_a_user_that_does_not_exist_is_no_file() -> None:
    with pytest.raises(ClusterConfigError, match="~no-such-user/config does not exist"):
        load_cluster(kubeconfig="~no-such-user/config")


def test_missing_file_says_how_to_name_one(tmp_path: Path) -> None:
    """Standalone use begins here."""
    with pytest.raises(ClusterConfigError, match="does not exist; name a kubeconfig with --kubeconfig"):
        load(tmp_path / "none")
    with pytest.raises(ClusterConfigError, match="Is a directory"):
        load(tmp_path)


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an image."""
    for name in [one for one in sys.modules if one.partition(".")[0] == "kubernetes"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kubernetes", None)


@pytest.mark.usefixtures("no_package")
def test_missing_package_says_what_to_install(tmp_path: Path) -> None:
    """A pod with a kubeconfig in a volume, whose user has a plugin."""
    path = write_kubeconfig(tmp_path / "config", user=write_plugin(tmp_path, ""))
    with pytest.raises(ClusterConfigError, match=r"config, context home: .*is not installed.*pip install kubernetes"):
        load(path)


@pytest.mark.usefixtures("no_package")
def test_a_pods_own_account_needs_no_package(tmp_path: Path) -> None:
    write_service_account(tmp_path, token="secret")
    inside = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    found = load_cluster(environment=inside, service_account=tmp_path)
    assert found.origin == "the pod's service account"


@pytest.mark.usefixtures("no_package")
def test_a_plain_kubeconfig_needs_no_package(tmp_path: Path) -> None:
    assert load(write_kubeconfig(tmp_path / "config")).read_authorization() == "Bearer secret"


def test_keys_leave_no_files_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package writes them to the folder for temporary files; they are gone when it has been read."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    for _ in range(2):
        user = write_plugin(tmp_path, credential({"token": "fresh"}))
        assert load(write_kubeconfig(tmp_path / "config", user=user)).tls.ca == AUTHORITY
    assert list((tmp_path / "temporary").iterdir()) == []


async def test_a_cluster_is_found(tmp_path: Path) -> None:
    found = await find_cluster(kubeconfig=str(write_kubeconfig(tmp_path / "config")), context=None)
    assert isinstance(found, Cluster)


@pytest.mark.parametrize(
    ("flag", "status", "text"),
    [
        pytest.param("--source", 2, "--source: ", id="asked for by a flag"),
        pytest.param(None, 3, "", id="asked for by the command itself"),
    ],
)
async def test_one_that_cannot_be_read_ends_the_program_with_a_line(
    tmp_path: Path, flag: str | None, status: int, text: str
) -> None:
    missing = tmp_path / "config"
    with pytest.raises(StartError) as caught:
        await find_cluster(kubeconfig=str(missing), context=None, flag=flag, status=status)
    assert str(caught.value).startswith(f"{text}{missing} does not exist")
    assert caught.value.status == status


async def test_a_credential_plugin_that_hangs_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    released, entered = threading.Event(), trio.Event()

    def hang(**_: object) -> None:
        trio.from_thread.run_sync(entered.set)
        released.wait(30)

    monkeypatch.setattr(config, "load_cluster", hang)
    async with trio.open_nursery() as nursery:

        async def find() -> None:
            await find_cluster(kubeconfig=None, context=None)

        nursery.start_soon(find)
        await entered.wait()
        nursery.cancel_scope.cancel()
    assert not released.is_set()
    released.set()
