"""The whole path on real programs: Ingresses in a real API server, a real CoreDNS with our stanza, relay, nginx.

The pod of the scene is curl in a mount namespace whose resolv.conf names that CoreDNS: its C library resolves every
name.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from dnsproxy.corefile.plan import plan_install, plan_uninstall
from sidecar.values.endpoints import Endpoint
from tests.conftest import refuse
from tests.kit.apiserver import ApiServer
from tests.kit.coredns import CoreDns, running_coredns
from tests.kit.nginx import Nginx, nginx_expecting_proxy
from tests.kit.polling import poll_until
from tests.kit.ports import free_port
from tests.kit.programs import program

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "coredns", "nginx", "curl", "dig")

CLUSTER_DNS = "127.0.0.53"
"""CoreDNS listens here on port 53, because resolv.conf cannot name another port."""
RELAY = "127.0.0.21"
POD = "127.0.0.31"
OUTSIDE, OUTSIDE_ADDRESS = "www.example.net", "192.0.2.80"
PUBLIC_APP_ADDRESS = "192.0.2.10"
"""The public DNS's answer for every name in example.org: the load balancer."""

# kubeadm's Corefile, except for its listen addresses and the API server's address.
COREFILE = """.:53 {{
    bind {address}
    errors
    health {address}:{health} {{
       lameduck 5s
    }}
    ready {address}:{ready}
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
       kubeconfig {kubeconfig} test
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }}
    prometheus {address}:{metrics}
    forward . 127.0.0.1:{upstream} {{
       max_concurrent 1000
    }}
    cache 30
    loop
    reload
    loadbalance
}}
"""

PUBLIC_COREFILE = """
example.org {{
    bind 127.0.0.1
    template IN A {{
        answer "{{{{ .Name }}}} 60 IN A {app_address}"
    }}
    template IN ANY
}}
{outside} {{
    bind 127.0.0.1
    template IN A {{
        answer "{{{{ .Name }}}} 60 IN A {outside_address}"
    }}
}}
. {{
    bind 127.0.0.1
    template IN ANY {{
        rcode NXDOMAIN
    }}
}}
"""


@pytest.fixture(autouse=True)
def root() -> None:
    if os.geteuid() != 0:
        refuse("the scene needs root: CoreDNS on port 53, and a separate resolv.conf for curl")


@dataclass(frozen=True)
class Scene:
    """The running parts."""

    api: ApiServer
    coredns: CoreDns
    dnsproxy: subprocess.Popen[str]
    nginx: Nginx
    url_port: int
    resolv_conf: Path
    admin: str

    def dig(self, name: str, kind: str = "A") -> list[str]:
        """The answer of the cluster's DNS."""
        command = [program("dig"), f"@{CLUSTER_DNS}", "+short", "+tries=3", "+time=4", name, kind]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()

    def curl(self, host: str) -> subprocess.CompletedProcess[str]:
        """Fetch a page like a pod: by name, through its own resolver."""
        inner = f'mount --bind {self.resolv_conf} /etc/resolv.conf && exec "$@"'
        fetch = [program("curl"), "-sS", "--max-time", "20", "--interface", POD, "-w", "\n%{http_code}"]
        command = ["unshare", "-m", "sh", "-c", inner, "sh", *fetch, f"http://{host}:{self.url_port}/"]
        return subprocess.run(command, capture_output=True, text=True, check=False)


def eventually(condition: Callable[[], object], *, seconds: float = 60.0) -> None:
    """Wait longer than CoreDNS keeps an answer of the public server that came before the table."""
    poll_until(condition, "the condition", seconds=seconds)


@contextmanager
def started(*command: str, said: str) -> Iterator[subprocess.Popen[str]]:
    """One of our programs, from a log event to its end by handle."""
    process = subprocess.Popen([sys.executable, "-m", *command], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if f'"event": "{said}"' in line:
                break
        else:
            pytest.fail("".join(lines))
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


@pytest.fixture
def scene(apiserver: ApiServer, tmp_path: Path) -> Iterator[Scene]:
    with ExitStack() as stack:
        stack.callback(apiserver.delete_all_ingresses)
        public_text = PUBLIC_COREFILE.format(
            outside=OUTSIDE, outside_address=OUTSIDE_ADDRESS, app_address=PUBLIC_APP_ADDRESS
        )
        public = stack.enter_context(running_coredns(tmp_path, public_text))
        nginx = stack.enter_context(nginx_expecting_proxy(tmp_path))
        dns_port, url_port, admin_port = free_port(), free_port(), free_port()
        dnsproxy = stack.enter_context(
            started(
                *("dnsproxy", "serve", "--log-format", "json", "--listen", f"127.0.0.1:{dns_port}"),
                *("--upstream", f"127.0.0.1:{public.port}", "--admin", f"127.0.0.1:{admin_port}"),
                *("--source", "ingress", "--kubeconfig", str(apiserver.kubeconfig), "--target", RELAY),
                said="serving",
            )
        )
        stack.enter_context(
            started(
                *("proxy", "--log-format", "json", "--admin", "off"),
                *("--route", f"{RELAY}:{url_port}=127.0.0.1:{nginx.port}"),
                said="relaying",
            )
        )
        stock = COREFILE.format(
            address=CLUSTER_DNS,
            kubeconfig=apiserver.kubeconfig,
            upstream=public.port,
            **{name: free_port() for name in ("health", "ready", "metrics")},
        )
        installed = plan_install(stock, addresses=[Endpoint("127.0.0.1", dns_port)]).new
        assert plan_uninstall(installed).new == stock
        coredns = stack.enter_context(running_coredns(tmp_path, installed, port=53))
        resolv_conf = tmp_path / "resolv.conf"
        resolv_conf.write_text(f"nameserver {CLUSTER_DNS}\noptions timeout:4 attempts:1\n")
        yield Scene(apiserver, coredns, dnsproxy, nginx, url_port, resolv_conf, f"127.0.0.1:{admin_port}")


def test_an_ingress_is_resolved_and_fetched_and_the_backend_knows_the_client(scene: Scene) -> None:
    # Without our table, the name resolves to the load balancer, and the ingress refuses clients without a header.
    assert scene.dig("early.example.org") == [PUBLIC_APP_ADDRESS]
    refused = [program("curl"), "-sS", "--max-time", "5", f"http://127.0.0.1:{scene.nginx.port}/"]
    assert subprocess.run(refused, capture_output=True, check=False).returncode != 0

    scene.api.create_ingress("web", ["app.example.org", "*.apps.example.org"])
    eventually(lambda: scene.dig("app.example.org") == [RELAY])
    assert scene.dig("one.apps.example.org") == [RELAY]
    assert scene.dig("app.example.org", "AAAA") == []
    assert scene.dig(OUTSIDE) == [OUTSIDE_ADDRESS]

    for host in ("app.example.org", "one.apps.example.org"):
        fetched = scene.curl(host)
        assert fetched.stdout.endswith("\n200"), fetched.stderr
    eventually(lambda: scene.nginx.clients().count(POD) == 2)

    # Names that are created and deleted at run time; a name that was never queried is in no cache.
    scene.api.create_ingress("second", ["second.example.org"])
    eventually(lambda: scene.dig("second.example.org") == [RELAY])
    scene.api.delete_ingress("second")
    eventually(lambda: scene.dig("second.example.org") == [PUBLIC_APP_ADDRESS])


def test_the_cluster_keeps_its_dns_when_dnsproxy_is_killed(scene: Scene) -> None:
    scene.api.create_ingress("web", ["app.example.org"])
    eventually(lambda: scene.dig("app.example.org") == [RELAY])
    scene.dnsproxy.kill()
    scene.dnsproxy.wait()
    # These were never queried, so no cache can answer them.
    assert scene.dig(OUTSIDE) == [OUTSIDE_ADDRESS]
    assert scene.dig("later.example.org") == [PUBLIC_APP_ADDRESS]
    assert scene.dig("kubernetes.default.svc.cluster.local") != []


def test_the_last_table_outlives_the_api_server(scene: Scene) -> None:
    scene.api.create_ingress("web", ["app.example.org", "also.example.org"])
    eventually(lambda: scene.dig("app.example.org") == [RELAY])
    scene.api.kill()
    try:
        assert scene.dig("also.example.org") == [RELAY]
        ready = subprocess.run(
            [program("curl"), "-sS", f"http://{scene.admin}/readyz"], capture_output=True, text=True, check=False
        )
        assert ready.stdout.startswith("ready"), ready
    finally:
        scene.api.start()
    scene.api.create_ingress("back", ["back.example.org"])
    eventually(lambda: scene.dig("back.example.org") == [RELAY])
    assert scene.dig("app.example.org") == [RELAY]
