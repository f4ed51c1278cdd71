"""The same kubeconfigs given to kubectl: it sends what is sent here, and refuses what is refused here."""

from __future__ import annotations

import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from sidecar.kubernetes.cluster import ClusterConfigError
from sidecar.kubernetes.kubeconfig import load_kubeconfig
from tests.kit.programs import program
from tests.sidecar.kubernetes.test_kubeconfig_selection import CA, PLUGIN, document

pytestmark = pytest.mark.peer("kubectl")


@dataclass(frozen=True, slots=True)
class Recorder:
    """An https server that keeps the Authorization of each request; its authority is in `ca.crt`."""

    url: str
    folder: Path
    authorizations: list[str | None] = field(default_factory=list)


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    (tmp_path / "token").write_text("filed\n")
    (tmp_path / "empty").touch()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            one.authorizations.append(self.headers["Authorization"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        one = Recorder(f"https://127.0.0.1:{server.server_port}", tmp_path)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield one
        server.shutdown()
        thread.join()


def write(recorder: Recorder, changes: dict[str, Any]) -> Path:
    cluster = {"server": recorder.url} | changes.get("cluster", {"certificate-authority": "ca.crt"})
    path = recorder.folder / "config"
    path.write_text(yaml.safe_dump(document(**changes | {"cluster": cluster})))
    return path


def ask(path: Path) -> subprocess.CompletedProcess[str]:
    command = [program("kubectl"), "--kubeconfig", str(path), "get", "--raw", "/x"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    "user",
    [
        pytest.param({"token": "secret"}, id="token"),
        pytest.param({"tokenFile": "token"}, id="file"),
        pytest.param({"token": "secret", "tokenFile": "token"}, id="token and file"),
        pytest.param({"token": "secret", "tokenFile": "none"}, id="token and missing file"),
        pytest.param({"token": "secret", "tokenFile": "empty"}, id="token and empty file"),
        pytest.param({"token": "secret", "client-key": "none"}, id="token and a key without certificate"),
        pytest.param({"username": "a", "password": "b"}, id="name and password"),
        pytest.param({"username": "\u20ac"}, id="name in UTF-8 without password"),
        pytest.param(PLUGIN | {"token": "secret"}, id="token and plugin"),
        pytest.param(PLUGIN | {"username": "a", "password": "b"}, id="name and plugin"),
    ],
)
def test_kubectl_sends_the_same_header(recorder: Recorder, user: dict[str, Any]) -> None:
    if "exec" in user:
        user = user | {"exec": user["exec"] | {"interactiveMode": "Never"}}
    path = write(recorder, {"user": user})
    asked = ask(path)
    assert asked.returncode == 0, asked.stderr
    assert recorder.authorizations == [load_kubeconfig(str(path), context=None).read_authorization()]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"user": {"token": "t", "username": "a"}}, id="token and name"),
        pytest.param({"user": {"tokenFile": "token", "username": "a"}}, id="token's file and name"),
        pytest.param({"user": {"tokenFile": "empty"}}, id="empty file"),
        pytest.param({"user": {"token": 12345}}, id="number"),
        pytest.param({"user": {"token": "a\nb"}}, id="two lines"),
        pytest.param({"user": {"client-certificate": "ca.crt"}}, id="certificate without key"),
        pytest.param({"users": []}, id="no such user"),
        pytest.param({"clusters": []}, id="no such cluster"),
        pytest.param({"users": [{"name": "u", "user": {"token": "t"}}] * 2}, id="user twice"),
        pytest.param({"kind": "Secret"}, id="another kind"),
        pytest.param({"cluster": CA | {"insecure-skip-tls-verify": True}}, id="insecure with authority"),
        pytest.param({"cluster": CA | {"certificate-authority": "ca.crt"}}, id="authority twice"),
        pytest.param({"cluster": {"certificate-authority": "none"}}, id="no such authority"),
        pytest.param({"cluster": {"certificate-authority-data": "%"}}, id="not base64"),
        pytest.param({"cluster": {"proxy-url": "ftp://192.0.2.1"}}, id="proxy of FTP"),
    ],
)
def test_kubectl_refuses_the_same(recorder: Recorder, changes: dict[str, Any]) -> None:
    path = write(recorder, changes)
    assert ask(path).returncode != 0
    assert recorder.authorizations == []
    with pytest.raises(ClusterConfigError, match=str(recorder.folder)):
        load_kubeconfig(str(path), context=None)
