"""The scene, step by step: the fault, the cure, life with it, and the end without a trace.

The law: each step is a sentence (its docstring) that it proves or falls over, and says what it saw.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from tests.cluster.stage import COREDNS_MAP, Fell, Stage
from tests.cluster.texts import CLUSTER_DNS, PUBLIC_ADDRESS
from tests.deploy.manifests import DEPLOY, compose
from tests.peers.programs import program

MANIFESTS: Final = Path(__file__).parent / "manifests"
OVERLAY: Final = DEPLOY / "overlays" / "kubeadm"
LOOKUPS: Final = 100_000
RELAY_SECONDS: Final = 75
OUTAGE_SECONDS: Final = 60.0
RESTART_SECONDS: Final = 30.0
"""For a kubelet to start a container again, on a machine with other work."""

_NO_CONNECTION: Final = 7
"""curl's exit status for it."""

PLAIN: Final = """
configMapGenerator:
  - name: dnsproxy-settings
    namespace: switchback
    behavior: merge
    literals:
      - DNSPROXY_TARGET_FOR=plain=service:ingress-nginx/plain
"""
PLAIN_ROLE: Final[Sequence[dict[str, Any]]] = (
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "dnsproxy-target", "namespace": "ingress-nginx"},
        "rules": [
            {"apiGroups": [""], "resources": ["services"], "resourceNames": ["plain"], "verbs": ["list", "watch"]}
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
    """A cluster as kubeadm makes it, two ingress controllers, a load balancer with an address, and a pod."""
    make_certificate(stage.folder)
    stage.kubectl("apply", "-f", str(MANIFESTS / "coredns.yaml"))
    stage.kubectl("apply", "-f", str(MANIFESTS / "ingress.yaml"))
    pair = [f"--cert={stage.folder}/tls.crt", f"--key={stage.folder}/tls.key"]
    stage.kubectl("create", "secret", "tls", "tls", "-n", "ingress-nginx", *pair)
    files = [f"--from-file={Path(__file__).parent / 'load.py'}", f"--from-file=ca.crt={stage.folder}/tls.crt"]
    stage.kubectl("create", "configmap", "client", *files)
    stage.kubectl("apply", "-f", str(MANIFESTS / "client.yaml"))
    stage.rolled_out("deployment/coredns", namespace="kube-system")
    stage.rolled_out("deployment/controller", "deployment/plain", namespace="ingress-nginx")
    status = {"status": {"loadBalancer": {"ingress": [{"ip": PUBLIC_ADDRESS, "ipMode": "VIP"}]}}}
    balancer = ["service", "ingress-nginx-controller", "-n", "ingress-nginx"]
    stage.kubectl("patch", *balancer, "--subresource=status", "--type=merge", "-p", json.dumps(status))
    stage.kubectl("wait", "pod/client", "--for=condition=Ready", "--timeout=120s")
    stage.ingress("app", "app.example.org")
    stage.before["corefile"] = stage.corefile()
    stage.say(stage.kubectl("get", "pods", "-A", "-o", "wide"))


def fault_is_there(stage: Stage) -> None:
    """Before: the pod can't reach the cluster's own hostname; from outside, with the header, it answers."""
    stage.eventually("the public address", lambda: stage.dig("app.example.org") == [PUBLIC_ADDRESS])
    # kube-proxy has to learn of the address first: until then nobody answers there at all.
    stage.eventually("somebody there", lambda: stage.curl("http://app.example.org/")[0] != _NO_CONNECTION)
    for url in ("http://app.example.org/", "https://app.example.org/"):
        status, said = stage.curl(url)
        stage.say(f"curl {url}: {said}")
        if status == 0:
            raise Fell(f"{url} answered: there is no fault to cure")
    log = stage.kubectl("logs", "deployment/controller", "-n", "ingress-nginx")
    broken = [line for line in log.splitlines() if "broken header" in line]
    stage.say(f"nginx: {broken[-1] if broken else 'no word of a broken header'}")
    if not broken:
        raise Fell("nginx did not complain about a missing header")
    outside = [
        "curl",
        "-sS",
        "--haproxy-protocol",
        "--max-time",
        "8",
        "--resolve",
        f"app.example.org:80:{PUBLIC_ADDRESS}",
    ]
    done = stage.node.run(*outside, "http://app.example.org/")
    stage.say(f"with the header, as the load balancer sends it: {done.stdout.strip()}")
    stage.expect("the page", saw=done.stdout, wanted="hello from app.example.org\n")


def apply_installs(stage: Stage) -> None:
    """`kubectl apply -k`: the pods run under Pod Security, and the installer's Job puts the stanza in."""
    begun = time.monotonic()
    stage.say(stage.kubectl("apply", "-k", str(OVERLAY)).splitlines()[-1])
    stage.rolled_out("deployment/dnsproxy", "deployment/relay")
    stage.say(f"dnsproxy and relay are ready after {time.monotonic() - begun:.0f} s")
    finish_job(stage, "dnsproxy-install")
    stage.say(f"installed and loaded after {time.monotonic() - begun:.0f} s")
    stage.say(stage.corefile())


def cure_works(stage: Stage) -> None:
    """After: 200 over HTTP and HTTPS with the pod's own address in nginx's log, from glibc and from musl."""
    relay, pod = stage.relay_address(), stage.client_address()
    # Whatever a CoreDNS had in its cache goes within 30 s; the Service deals questions to both.
    lasted = stage.eventually(
        "the relay's address from every CoreDNS",
        lambda: all(stage.dig("app.example.org") == [relay] for _ in range(20)),
    )
    stage.say(f"every CoreDNS has forgotten the public address after {lasted:.0f} s")
    for scheme in ("http", "https"):
        status, said = stage.curl(f"{scheme}://app.example.org/")
        stage.expect(f"{scheme} page", saw=(status, said), wanted=(0, "hello from app.example.org"))
        line = seen_by_nginx(stage, f'"app.example.org" 200 {scheme}')
        stage.say(f"{scheme}: {said}; nginx: {line}")
        stage.expect("the client that nginx saw", saw=line.split()[0], wanted=pod)
    for words in (["getent", "ahostsv4", "app.example.org"], ["musl-resolve", "app.example.org"]):
        status, said = stage.client(*words)
        stage.expect(words[0], saw=(status, said.split()[0] if said else ""), wanted=(0, relay))
        stage.say(f"{words[0]}: {said.splitlines()[0]}")
    stage.expect("a name outside", saw=stage.dig("www.example.net"), wanted=["192.0.2.80"])
    stage.expect("a name in the cluster", saw=stage.dig("kube-dns.kube-system.svc.cluster.local"), wanted=[CLUSTER_DNS])


def new_ingress_is_quick(stage: Stage) -> None:
    """A new Ingress resolves in less than a second, a wildcard too."""
    relay = stage.relay_address()
    for name, host, asked in (("shop", "shop.example.org", ""), ("apps", "*.apps.example.org", "a1.apps.example.org")):
        stage.ingress(name, host)
        lasted = stage.eventually(host, lambda asked=asked or host: stage.dig(asked) == [relay], seconds=10)  # type: ignore[misc]
        stage.say(f"{host}: {lasted:.2f} s after kubectl returned")
        if lasted >= 1:
            raise Fell(f"{host} took {lasted:.2f} s")
    status, said = stage.curl("https://shop.example.org/")
    stage.expect("the page", saw=(status, said), wanted=(0, "hello from shop.example.org"))


def second_class_goes_straight(stage: Stage) -> None:
    """An ingress class without the PROXY protocol: its names point straight at its controller."""
    folder = stage.folder / "with-plain"
    folder.mkdir()
    compose(folder, with_components=[], base=OVERLAY, more=PLAIN)
    for one in PLAIN_ROLE:
        stage.apply(one)
    stage.kubectl("apply", "-k", str(folder))
    stage.rolled_out("deployment/dnsproxy")
    stage.ingress("plain", "plain.example.org", ingress_class="plain")
    plain = stage.get("service", "plain", "-n", "ingress-nginx")["spec"]["clusterIP"]
    stage.eventually("the plain controller's address", lambda: stage.dig("plain.example.org") == [plain], seconds=20)
    status, said = stage.curl("http://plain.example.org/")
    stage.expect("the page", saw=(status, said), wanted=(0, "plain hello from plain.example.org"))
    status, other = stage.curl("http://app.example.org/")
    stage.expect("the other class's page", saw=(status, other), wanted=(0, "hello from app.example.org"))
    stage.say(f"plain.example.org at {plain}: {said}; {other}")


def no_lookup_is_lost(stage: Stage) -> None:
    """A rolling restart of dnsproxy under load: none of 100,000 lookups is lost, none is answered wrongly."""
    words = ["dns", CLUSTER_DNS, "apps.example.org", stage.relay_address(), str(LOOKUPS)]
    said = under_load(stage, words, lambda: restart(stage, "deployment/dnsproxy"))
    stage.expect("lookups", saw=said, wanted={"ok": LOOKUPS})


def no_request_is_lost(stage: Stage) -> None:
    """A rolling restart of the relay under load: no request is lost."""
    words = ["http", "http://app.example.org/", str(RELAY_SECONDS)]
    said = under_load(stage, words, lambda: restart(stage, "deployment/relay"))
    stage.expect("requests that failed", saw=sum(said.values()) - said.get("ok", 0), wanted=0)


def outage_is_survived(stage: Stage) -> None:
    """The API server is away for a minute: names go on being answered, by a dnsproxy that starts anew too.

    While one of two is dead nobody can tell kube-proxy, so its share goes to the stanza's second upstream.
    """
    relay = stage.relay_address()
    stage.node.kill("kube-apiserver")
    begun = time.monotonic()
    killed = kill_one(stage, "dnsproxy")
    said: list[tuple[float, list[str]]] = []
    while time.monotonic() - begun < OUTAGE_SECONDS:
        said.append((time.monotonic() - begun, stage.dig(f"o{len(said)}.apps.example.org")))
        time.sleep(0.02)
    stage.node.start("kube-apiserver")
    stage.node.wait_for(stage.node.is_api_ready, "kube-apiserver")
    public = [when for when, answer in said if answer == [PUBLIC_ADDRESS]]
    lost = [when for when, answer in said if answer not in ([relay], [PUBLIC_ADDRESS])]
    stage.say(
        f"{len(said)} lookups in {OUTAGE_SECONDS:.0f} s, {len(lost)} lost; process {killed} of dnsproxy was killed"
    )
    stage.say(f"{len(public)} got the public address, the last after {max(public, default=0):.1f} s")
    stage.expect("lookups lost", saw=lost, wanted=[])
    if max(public, default=0) > RESTART_SECONDS:
        raise Fell("a dnsproxy that was killed is not back")
    stage.rolled_out("deployment/dnsproxy")
    stage.ingress("late", "late.example.com")
    lasted = stage.eventually("a new Ingress", lambda: stage.dig("late.example.com") == [relay], seconds=120)
    stage.say(f"an Ingress that came afterwards: {lasted:.1f} s")


def rendered_anew_is_repaired(stage: Stage) -> None:
    """The owner renders the Corefile anew: applying again puts the stanza back."""
    data = {"data": {"Corefile": stage.before["corefile"]}}
    stage.kubectl("patch", COREDNS_MAP, "-n", "kube-system", "--type=merge", "-p", json.dumps(data))
    stage.kubectl("delete", "job", "dnsproxy-install", "-n", "switchback", "--ignore-not-found")
    stage.kubectl("apply", "-k", str(stage.folder / "with-plain"))
    finish_job(stage, "dnsproxy-install")
    status, said = stage.curl("https://app.example.org/")
    stage.expect("the page", saw=(status, said), wanted=(0, "hello from app.example.org"))


def every_node_has_one(stage: Stage) -> None:
    """The component node-local: dnsproxy as a DaemonSet, asked by the pods of its node alone."""
    folder = stage.folder / "node-local"
    folder.mkdir()
    compose(folder, with_components=[DEPLOY / "components" / "node-local"], base=OVERLAY, more=PLAIN)
    stage.kubectl("apply", "-k", str(folder))
    stage.rolled_out("daemonset/dnsproxy")
    stage.kubectl("delete", "deployment", "dnsproxy", "-n", "switchback", "--wait")
    policy = stage.get("service", "dnsproxy", "-n", "switchback")["spec"]["internalTrafficPolicy"]
    stage.expect("the Service's policy", saw=policy, wanted="Local")
    relay = stage.relay_address()
    stage.eventually("its answer", lambda: stage.dig("n1.apps.example.org") == [relay], seconds=30)
    stage.say(stage.kubectl("get", "daemonset,pods", "-n", "switchback", "-l", "app.kubernetes.io/name=dnsproxy"))


def removal_leaves_nothing(stage: Stage) -> None:
    """`deploy/remove.sh`: the Corefile is what it was, octet for octet, and no object is left; twice is as once."""
    for _ in range(2):
        command = [str(DEPLOY / "remove.sh"), str(stage.folder / "node-local")]
        environment = {**os.environ, "KUBECTL": f"{program('kubectl')} --kubeconfig={stage.node.folder}/kubeconfig"}
        done = subprocess.run(stage.node.inside(*command), capture_output=True, text=True, check=False, env=environment)
        stage.say((done.stdout + done.stderr).strip())
        stage.expect("remove.sh", saw=done.returncode, wanted=0)
    stage.expect("the Corefile", saw=stage.corefile(), wanted=stage.before["corefile"])
    kinds = stage.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    left = stage.kubectl("get", ",".join(kinds), "-A", "-l", "app.kubernetes.io/part-of=switchback", "-o", "name")
    stage.expect("what is left", saw=left.split(), wanted=[])
    stage.eventually("the public address", lambda: stage.dig("late.example.org") == [PUBLIC_ADDRESS])
    stage.say(f"the Corefile is as before; nothing is left; app.example.org is at {PUBLIC_ADDRESS} again")


STEPS: Final[Sequence[Callable[[Stage], None]]] = (
    cluster_is_there,
    fault_is_there,
    apply_installs,
    cure_works,
    new_ingress_is_quick,
    second_class_goes_straight,
    no_lookup_is_lost,
    no_request_is_lost,
    outage_is_survived,
    rendered_anew_is_repaired,
    every_node_has_one,
    removal_leaves_nothing,
)


def finish_job(stage: Stage, name: str) -> None:
    """Wait for a Job's end and say what it said; raises Fell where it failed."""

    def condition() -> str:
        done = stage.get("job", name, "-n", "switchback").get("status", {}).get("conditions", [])
        return next(
            (one["type"] for one in done if one["type"] in {"Complete", "Failed"} and one["status"] == "True"), ""
        )

    stage.eventually(f"the end of Job {name}", condition, seconds=420)
    ended = condition()
    stage.say(stage.kubectl("logs", f"job/{name}", "-n", "switchback"))
    stage.expect(f"Job {name}", saw=ended, wanted="Complete")


def under_load(stage: Stage, words: Sequence[str], act: Callable[[], None]) -> dict[str, int]:
    """What load.py counted in the client's pod while something was done."""
    with ThreadPoolExecutor(1) as pool:
        load = pool.submit(stage.client, "python3", "/client/load.py", *words)
        act()
        status, said = load.result()
    stage.say(f"load.py {' '.join(words)}: {said}")
    stage.expect("load.py", saw=status, wanted=0)
    counted: dict[str, int] = json.loads(said)["said"]
    return counted


def restart(stage: Stage, workload: str) -> None:
    """A rolling restart, to its end."""
    begun = time.monotonic()
    stage.kubectl("rollout", "restart", workload, "-n", "switchback")
    stage.rolled_out(workload)
    stage.say(f"{workload} was restarted in {time.monotonic() - begun:.0f} s")


def kill_one(stage: Stage, name: str) -> int:
    """SIGKILL one process of a program of ours; the kubelet starts it again. Gives its number in the node."""
    listing = stage.node.run("ps", "ax", "-o", "pid=,args=").stdout.splitlines()
    mine = [int(line.split()[0]) for line in listing if f"/app/bin/{name} " in line and "/app/bin/python" in line]
    stage.node.run("kill", "-KILL", str(mine[0]))
    return mine[0]


def seen_by_nginx(stage: Stage, what: str) -> str:
    """The last line of its log with this in it."""
    found: list[str] = []

    def look() -> bool:
        log = stage.kubectl("logs", "deployment/controller", "-n", "ingress-nginx")
        found[:] = [line for line in log.splitlines() if what in line]
        return bool(found)

    stage.eventually(f"{what} in nginx's log", look, seconds=20)
    return found[-1]


def make_certificate(folder: Path) -> None:
    """For every name of the scene; its own authority."""
    names = "subjectAltName=DNS:*.example.org,DNS:*.apps.example.org"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=scene", "-addext", names]
    words += ["-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt")]
    subprocess.run([program("openssl"), *words], check=True, capture_output=True)
