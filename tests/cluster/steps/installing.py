"""The steps of the scene from the fault to the cure, and the removal without a trace.

The law: the docstring of each step is a sentence that it proves, or else it fails; it reports what it saw.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.cluster.acting import (
    forget_release,
    kustomization,
    labelled,
    make_certificate,
    manifest,
    remove,
    seen_by_nginx,
)
from tests.cluster.readme import BUILD, IMPORT, INSTALL, TEST, play_in
from tests.cluster.stage import Stage, StepFailed
from tests.cluster.steps.life import ready_pods
from tests.cluster.steps.publishing import hosts_file
from tests.cluster.steps.whole_ip import from_pod, rules
from tests.deploy.manifests import INSTALLATION
from tests.kit.programs import program

LOAD: Final = Path(__file__).parent / "load.py"
"""The program that the client's pod runs."""

_NO_CONNECTION: Final = 7
"""The exit status of curl for this error."""

PLAIN_ROLE: Final[Sequence[dict[str, Any]]] = (
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "dnsproxy-target", "namespace": "ingress-nginx"},
        "rules": [
            {"apiGroups": [""], "resources": ["services"], "resourceNames": ["plain"], "verbs": ["list", "watch"]},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
        ],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "dnsproxy-target", "namespace": "ingress-nginx"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "dnsproxy-target"},
        "subjects": [{"kind": "ServiceAccount", "name": "dnsproxy", "namespace": "switchback"}],
    },
)


def cluster_is_there(stage: Stage) -> None:
    """A cluster as made by kubeadm, two ingress controllers, a load balancer with an address, and a pod."""
    make_certificate(stage.folder)
    stage.kubectl("apply", "--server-side", "-f", program("dnsendpoint"))
    stage.kubectl("apply", "-f", "-", given=manifest(stage, "coredns.yaml"))
    stage.kubectl("apply", "-f", "-", given=manifest(stage, "ingress.yaml"))
    pair = [f"--cert={stage.folder}/tls.crt", f"--key={stage.folder}/tls.key"]
    stage.kubectl("create", "secret", "tls", "tls", "-n", "ingress-nginx", *pair)
    files = [f"--from-file={LOAD}", f"--from-file=ca.crt={stage.folder}/tls.crt"]
    stage.kubectl("create", "configmap", "client", *files)
    stage.kubectl("apply", "-f", "-", given=manifest(stage, "client.yaml"))
    stage.rolled_out("deployment/coredns", namespace="kube-system")
    stage.rolled_out("deployment/controller", "deployment/plain", namespace="ingress-nginx")
    balancer = ("service", "ingress-nginx-controller", "-n", "ingress-nginx")
    stage.patch_status(*balancer, entries=stage.public(ipMode="VIP"))
    stage.kubectl("wait", "pod/client", "--for=condition=Ready", "--timeout=120s")
    stage.ingress("app", "app.example.org")
    # As the controller of a real ingress class does.
    stage.ingress_status("app", *stage.public())
    stage.before["corefile"] = stage.corefile()
    stage.say(stage.kubectl("get", "pods", "-A", "-o", "wide"))


def fault_is_there(stage: Stage) -> None:
    """Before: the pod cannot reach the cluster's own hostname; from outside, with the header, it answers."""
    stage.eventually("the public address", lambda: stage.dig("app.example.org") == [stage.at.public])
    # Until kube-proxy has learned the address, no server answers there.
    stage.eventually("a server at the name", lambda: stage.curl("http://app.example.org/")[0] != _NO_CONNECTION)
    for url in ("http://app.example.org/", "https://app.example.org/"):
        status, said = stage.curl(url)
        stage.say(f"curl {url}: {said}")
        if status == 0:
            raise StepFailed(f"{url} answered: there is no fault to fix")
    log = stage.kubectl("logs", "deployment/controller", "-n", "ingress-nginx")
    broken = [line for line in log.splitlines() if "broken header" in line]
    stage.say(f"nginx: {broken[-1] if broken else 'no broken header in the log'}")
    if not broken:
        raise StepFailed("nginx did not complain about a missing header")
    outside = [
        "curl",
        "-sS",
        "--haproxy-protocol",
        "--max-time",
        "8",
        "--resolve",
        f"app.example.org:80:{stage.at.in_url(stage.at.public)}",
    ]
    page = "hello from app.example.org\n"

    def is_served() -> bool:
        return stage.node.run(*outside, "http://app.example.org/", check=False).stdout == page

    # This node's kube-proxy may learn the address after that of the pod's node.
    stage.eventually("the page", is_served, seconds=60)
    stage.say(f"with the header, as the load balancer sends it: {page.strip()}")


def readme_installs(stage: Stage) -> None:
    """README's Install block, line by line: the pods run under Pod Security, and the stanza is put in."""
    begun = time.monotonic()
    stage.say(f"before the first step: {BUILD}; on each node: {IMPORT}")
    for line in INSTALL:
        stage.say(f"{line}\n{play_in(stage.node, line, stage.checkout)}")
    # Ready once the cluster's DNS asks dnsproxy.
    stage.expect("an operate that is ready", saw=bool(ready_pods(stage, "operate")), wanted=True)
    stage.say(f"installed and loaded after {time.monotonic() - begun:.0f} s")
    stage.say(stage.corefile())
    stage.rolled_out("deployment/dnsproxy", "deployment/relay")


def readme_is_tested(stage: Stage) -> None:
    """The block's last line: `helm test` finds that pods reach every host of the cluster."""
    said = play_in(stage.node, TEST, stage.checkout)
    stage.say(f"{TEST}\n{said}")
    stage.expect("the diagnosis of the host", saw="app.example.org" in said, wanted=True)


def apply_installs(stage: Stage) -> None:
    """`kubectl apply -k deploy`, without a value: the pods run under Pod Security, and the stanza is put in."""
    begun = time.monotonic()
    stage.say(stage.kubectl("apply", "-k", str(INSTALLATION)).splitlines()[-1])
    stage.rolled_out("deployment/dnsproxy", "deployment/relay")
    stage.say(f"dnsproxy and relay are ready after {time.monotonic() - begun:.0f} s")
    # Ready once the cluster's DNS asks dnsproxy.
    stage.eventually("an operate that is ready", lambda: ready_pods(stage, "operate"), seconds=420)
    stage.say(stage.kubectl("logs", "deployment/operate", "-n", "switchback"))
    stage.say(f"installed and loaded after {time.monotonic() - begun:.0f} s")
    stage.say(stage.corefile())


def cure_works(stage: Stage) -> None:
    """After: 200 over HTTP and HTTPS with the pod's own address in nginx's log, from glibc and from musl."""
    relay, pod = stage.relay_address(), stage.client_address()
    # A CoreDNS cache entry expires within 30 s; the Service distributes questions to both.
    lasted = stage.everywhere("app.example.org", relay)
    stage.say(f"every CoreDNS no longer caches the public address after {lasted:.0f} s")
    for scheme in ("http", "https"):
        status, said = stage.curl(f"{scheme}://app.example.org/")
        stage.expect(f"{scheme} page", saw=(status, said), wanted=(0, "hello from app.example.org"))
        line = seen_by_nginx(stage, f'"app.example.org" 200 {scheme}')
        stage.say(f"{scheme}: {said}; nginx: {line}")
        stage.expect("the client that nginx saw", saw=line.split()[0], wanted=pod)
    for words in (["getent", f"ahostsv{stage.at.family}", "app.example.org"], ["musl-resolve", "app.example.org"]):
        status, said = stage.client(*words)
        stage.expect(words[0], saw=(status, said.split()[0] if said else ""), wanted=(0, relay))
        stage.say(f"{words[0]}: {said.splitlines()[0]}")
    stage.expect("a name outside", saw=stage.dig("www.example.net"), wanted=[stage.at.elsewhere])
    stage.expect(
        "a name in the cluster", saw=stage.dig("kube-dns.kube-system.svc.cluster.local"), wanted=[stage.at.dns]
    )


def new_ingress_is_quick(stage: Stage) -> None:
    """A new Ingress resolves in less than a second, a wildcard too."""
    relay = stage.relay_address()
    for name in ("shop", "*.apps"):
        stage.ingress(name.removeprefix("*."), f"{name}.example.org")
    # Without public records: the others lead to the load balancer, and were replaced before anybody claimed them.
    for name, host, asked in (("new", "new.example.com", ""), ("below", "*.new.example.com", "a1.new.example.com")):
        stage.ingress(name, host)
        lasted = stage.eventually(host, lambda asked=asked or host: stage.dig(asked) == [relay], seconds=10)  # type: ignore[misc]
        stage.say(f"{host}: {lasted:.2f} s after kubectl returned")
        if lasted >= 1:
            raise StepFailed(f"{host} took {lasted:.2f} s")
    status, said = stage.curl("https://shop.example.org/")
    stage.expect("the page", saw=(status, said), wanted=(0, "hello from shop.example.org"))


def second_class_goes_straight(stage: Stage) -> None:
    """Kubectl takes over from Helm, with a class without the PROXY protocol: its names resolve to its controller."""
    for one in PLAIN_ROLE:
        stage.apply(one)
    stage.kubectl("apply", "-k", str(kustomization(stage, "with-plain")))
    stage.rolled_out("deployment/dnsproxy", "deployment/relay", "deployment/operate")
    forget_release(stage)
    stage.ingress("plain", "plain.example.org", ingress_class="plain")
    plain = stage.get("service", "plain", "-n", "ingress-nginx")["spec"]["clusterIP"]
    stage.eventually("the plain controller's address", lambda: stage.dig("plain.example.org") == [plain], seconds=20)
    status, said = stage.curl("http://plain.example.org/")
    stage.expect("the page", saw=(status, said), wanted=(0, "plain hello from plain.example.org"))
    status, other = stage.curl("http://app.example.org/")
    stage.expect("the other class's page", saw=(status, other), wanted=(0, "hello from app.example.org"))
    stage.say(f"plain.example.org at {plain}: {said}; {other}")


def removal_leaves_nothing(stage: Stage) -> None:
    """`deploy/remove.sh`: the Corefile is the original, octet for octet, no object or rule is left; twice is fine."""
    both = stage.folder / "both"
    both.mkdir()
    (both / "kustomization.yaml").write_text("kind: Kustomization\nresources: [../node-local, ../wholeip]\n")
    for _ in range(2):
        remove(stage, both)
    stage.expect("remaining objects", saw=labelled(stage), wanted=[])
    stage.expect("the rules of wholeip", saw=rules(stage), wanted="")
    stage.expect(
        "the source address outside",
        saw=from_pod(stage, "machine", stage.at.outside),
        wanted=stage.before["leaves as"],
    )
    stage.expect("the node's hosts file", saw=hosts_file(stage), wanted=stage.before["hosts"])
    stage.eventually("the public address", lambda: stage.dig("late.example.org") == [stage.at.public])
    stage.say("the Corefile, the node's hosts file and its rules are as before, and nothing is left")
