"""deploy/migrating: the commands of its guides, played in order on a real control plane beside a real CoreDNS.

The other tools have the objects of their real names and rights; their controllers are played with their accounts. Each
guide deletes all that is theirs, and no lookup fails on the way. Their text and ours in one Corefile are judged in
tests/peers/test_migrating.py.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.deploy.calls import Caller, account
from tests.deploy.control_plane import PEERS, labelled, running_control_plane
from tests.deploy.helm import template
from tests.deploy.manifests import compose, name_of
from tests.deploy.other_installations import TOOLS, Theirs
from tests.deploy.played_guide import Controller, Played, PodsOfHooks, Shell, commands_of, left_of
from tests.deploy.test_operate_rights import SLICE, ready_slice
from tests.kit.apiserver import ApiServer
from tests.kit.coredns import CoreDns, answering, running_coredns
from tests.kit.living_dns import Data, LivingCluster, following, localize
from tests.kit.other_tools import without_ouroboros_block
from tests.kit.polling import poll_until
from tests.kit.ports import free_port
from tests.kit.recorded_cluster import PATHS, recorded_cluster
from tests.kit.serve_process import serving
from tests.kit.watching import Watching, launched_watch
from tests.peers.test_migrating import asked_without_a_pause

pytestmark = [pytest.mark.peer(*PEERS, "coredns", "helm"), pytest.mark.timeout(400)]

HOST, FRESH, ELSEWHERE = "app.example.org", "fresh.example.org", "www.example.net"
"""The guide's host, which both steer, one that only ours knows, and a name that nobody steers."""
MORE: Final = "more.example.org"
"""A host that comes to theirs and goes."""
BY_DNSPROXY, BY_UPSTREAM = "192.0.2.1", "192.0.2.2"
COREFILE: Final = f"{PATHS['ConfigMap'].format('kube-system')}/coredns"


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with running_control_plane(tmp_path_factory.mktemp("control-plane")) as server:
        server.create_ingress("app", [HOST])
        tls = {"spec": {"tls": [{"hosts": [HOST]}]}}
        server.patch_ingress("app", tls)
        yield server


@contextmanager
def cluster_dns(server: ApiServer, folder: Path, dnsproxy: str, upstream: CoreDns) -> Iterator[CoreDns]:
    """A CoreDNS with the kubeadm Corefile of the cluster, plugin `kubernetes` included, whatever is in it just now."""
    port = free_port()

    def render(data: Data) -> dict[str, str]:
        words = {
            "/etc/resolv.conf": f"127.0.0.1:{upstream.port}",
            "kubernetes cluster.local in-addr.arpa ip6.arpa {": f"kubernetes cluster.local in-addr.arpa ip6.arpa {{\n"
            f"       kubeconfig {server.kubeconfig}",
            "cache 30": "cache 1",
            "ttl 30": "ttl 0",
            **dict.fromkeys(("    health {\n       lameduck 5s\n    }\n", "    ready\n", "    prometheus :9153\n"), ""),
            **({own: dnsproxy} if (own := address_of(server, "switchback/dnsproxy")) else {}),
        }
        return {"Corefile": localize(data["coredns"].get("Corefile", ""), port, words), "port": str(port)}

    with following(LivingCluster(server, "kube-system", folder), ["coredns"], render) as coredns:
        yield coredns


def address_of(server: ApiServer, service: str) -> str:
    """The ClusterIP of a Service, or nothing."""
    namespace, name = service.split("/")
    found = server.request("GET", PATHS["Service"].format(namespace))["items"]
    return next((str(one["spec"]["clusterIP"]) for one in found if one["metadata"]["name"] == name), "")


def theirs_account(server: ApiServer, theirs: Theirs) -> Caller:
    return account(server, theirs.controller.partition("/")[0], theirs.account)


def text_of(server: ApiServer) -> str:
    return str(server.request("GET", COREFILE)["data"]["Corefile"])


def settled(coredns: CoreDns, wanted: Sequence[str]) -> None:
    def look() -> list[str]:
        return [(coredns.addresses(one) or ["none"])[-1] for one in (HOST, FRESH, ELSEWHERE)]

    try:
        poll_until(lambda: look() == list(wanted), f"the answers {wanted}", seconds=60)
    except AssertionError as error:
        # CoreDNS keeps its Corefile after a reload that failed, and says so only there.
        error.add_note(f"answers: {look()}\n{coredns.log.read_text(encoding='utf-8') if coredns.log else ''}")
        raise


@contextmanager
def operating(server: ApiServer, folder: Path, dns: str) -> Iterator[Watching]:
    """Operate as its pod runs it, with its own account."""
    server.request("PATCH", SLICE, ready_slice(), content_type="application/apply-patch+yaml")
    config = account(server, "switchback", "operate").write_kubeconfig(folder / "operate")
    where = ["--kubeconfig", str(config), "--service", "switchback/dnsproxy", "--dns", dns]
    with launched_watch([sys.executable, "-m", "dnsproxy", "operate", *where], folder) as operate:
        yield operate


def both_write(server: ApiServer, theirs: Theirs) -> None:
    """Their controller has one host more for a while: it writes after us, twice, and our stanza stays."""
    before = text_of(server)
    assert "# BEGIN switchback" in before
    server.create_ingress("more", [MORE])
    server.patch_ingress("more", {"spec": {"tls": [{"hosts": [MORE]}]}})
    more = theirs.write(before, [HOST, MORE])
    assert (more != before, MORE in more) == (True, True)
    poll_until(lambda: text_of(server) == more, "their controller writes beside our stanza", seconds=60)
    server.delete_ingress("more")
    poll_until(lambda: text_of(server) == before, "their controller writes again", seconds=60)


@pytest.mark.parametrize("theirs", TOOLS)
def test_a_guide_leaves_nothing_of_theirs_and_no_lookup_fails(
    theirs: Theirs, control_plane: ApiServer, tmp_path: Path
) -> None:
    server, shell = control_plane, Shell(tmp_path, control_plane.kubeconfig)
    folder = tmp_path / "my-cluster"
    folder.mkdir()
    compose(folder, with_components=[])
    with ExitStack() as stack:
        stack.enter_context(recorded_cluster(server, "kubeadm"))
        upstream = stack.enter_context(running_coredns(tmp_path, answering(BY_UPSTREAM)))
        table = [word for one in (HOST, FRESH) for word in ("--host", f"{one}={BY_DNSPROXY}")]
        dnsproxy = stack.enter_context(serving(tmp_path, *table, "--upstream", f"127.0.0.1:{upstream.port}"))
        original = text_of(server)
        installed = shell.run(theirs.install)
        assert installed.returncode == 0, installed.stderr
        by_theirs = address_of(server, theirs.proxy)
        coredns = stack.enter_context(cluster_dns(server, tmp_path, str(dnsproxy.endpoint), upstream))
        settled(coredns, (BY_UPSTREAM, BY_UPSTREAM, BY_UPSTREAM))
        controller = Controller(server, theirs.controller, theirs_account(server, theirs), theirs.write)
        stack.enter_context(controller.running())
        settled(coredns, (by_theirs, BY_UPSTREAM, BY_UPSTREAM))
        alone = text_of(server)
        assert alone == theirs.write(original, [HOST])

        seen = stack.enter_context(asked_without_a_pause(coredns, HOST))
        others = stack.enter_context(asked_without_a_pause(coredns, ELSEWHERE))
        dns = f"127.0.0.1:{coredns.port}"
        played = Played(server, shell, PodsOfHooks(server, tmp_path), dns)
        wanted = (by_theirs, BY_UPSTREAM, BY_UPSTREAM)
        for line in commands_of(theirs.page):
            if " edit configmap" in line:
                assert set(seen) == {by_theirs}
                wanted = (BY_DNSPROXY, BY_DNSPROXY, BY_UPSTREAM)
            played.play(line)
            if "apply -k" in line:
                played.operate = stack.enter_context(operating(server, tmp_path, dns))
            elif "rollout status" in line:
                # Beside each other: theirs keep their hosts, as `rewrite` comes before `forward`.
                wanted = (by_theirs, BY_DNSPROXY, BY_UPSTREAM)
                both_write(server, theirs)
            if "--replicas=0" in line:
                # Its pod ends a moment later; a person's next command does, too.
                assert controller.idle.wait(60)
            settled(coredns, wanted)
        assert wanted[0] == BY_DNSPROXY
        assert (set(seen), set(others)) == ({by_theirs, BY_DNSPROXY}, {BY_UPSTREAM})
        assert controller.failures == []
        assert left_of(shell, theirs.page.removesuffix(".md")) == []

        assert played.operate is not None
        assert played.operate.terminate() == 0
        removed = shell.run(f"{sys.executable} -m dnsproxy uninstall --stop-writers --dns {dns}")
        assert removed.returncode == 0, removed.stderr
        assert text_of(server) == theirs.take_out(alone)
        assert theirs.take_out(alone).strip() == original.strip()
        shell.run("kubectl delete -k my-cluster")
        settled(coredns, (BY_UPSTREAM, BY_UPSTREAM, BY_UPSTREAM))
        poll_until(lambda: labelled(server) == [], "our objects go", seconds=100)


def test_the_hook_of_ouroboros_leaves_our_stanza_as_it_is(control_plane: ApiServer, tmp_path: Path) -> None:
    # It edits printed YAML with sed: a text that kubectl prints on one line would lose more than its block.
    server, shell = control_plane, Shell(tmp_path, control_plane.kubeconfig)
    (theirs,) = [one.values[0] for one in TOOLS if one.id == "ouroboros"]
    assert isinstance(theirs, Theirs)
    with recorded_cluster(server, "kubeadm"):
        original = text_of(server)
        assert shell.run(theirs.install).returncode == 0
        controller = Controller(server, theirs.controller, theirs_account(server, theirs), theirs.write)
        controller.look()
        ours = ["install", "--address", "192.0.2.53", "--timeout", "0"]
        done = shell.run(shlex.join([sys.executable, "-m", "dnsproxy", *ours]))
        assert done.returncode == 0, done.stderr
        both = text_of(server)
        assert "# BEGIN switchback" in both
        pods = PodsOfHooks(server, tmp_path)
        with pods.played():
            assert shell.run("helm -n ouroboros uninstall ouroboros --wait").returncode == 0, pods.said
        assert text_of(server) == without_ouroboros_block(both) != both
        assert shell.run(f"{sys.executable} -m dnsproxy uninstall --timeout 0").returncode == 0
        assert text_of(server) == original
        assert shell.run("kubectl delete namespace ouroboros").returncode == 0
        assert left_of(shell, "ouroboros") == []


@pytest.mark.parametrize("page", ["hairpin-proxy.md", "ouroboros.md"])
def test_the_chart_has_the_objects_that_a_guide_names(page: str) -> None:
    lines = [line for line in commands_of(page) if "-n switchback" in line]
    named = {found[1] for line in lines for found in re.finditer(r"\bdeploy(?:ment)?/(\S+)", line)}
    assert named == {"operate"}
    assert {f"Deployment switchback/{one}" for one in named} <= {name_of(one) for one in template({})}
