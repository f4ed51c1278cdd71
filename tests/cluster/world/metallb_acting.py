"""What the steps of the scene `metallb` do and look at.

The law: as in acting.py. Visitors and pods ask for the same host.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from tests.cluster.acting import seen_by_nginx
from tests.cluster.stage import Stage, StepFailed
from tests.cluster.steps.balancer import CONTROLLER, SPACE, visit
from tests.cluster.steps.ip_mode import expect_fault
from tests.cluster.world import metallb
from tests.cluster.world.metallb_front import neighbour

HOST: Final = "app.example.org"
URL: Final = f"http://{HOST}/"
PAGE: Final = f"hello from {HOST}"
NEIGHBOUR: Final = "neighbour"
"""A Service of MetalLB that needs no header."""
_PLAIN: Final = f"plain {PAGE}"


def neighbour_service() -> dict[str, Any]:
    """The neighbour: another LoadBalancer Service, of the controller without the header."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NEIGHBOUR, "namespace": SPACE},
        "spec": {"type": "LoadBalancer", "selector": {"app": "plain"}, "ports": [{"name": "http", "port": 80}]},
    }


def shape(service: dict[str, Any]) -> dict[str, Any]:
    """What others see of a Service: its spec, status and annotations."""
    return {"annotations": service["metadata"].get("annotations"), **{key: service[key] for key in ("spec", "status")}}


def address_of(stage: Stage, service: str) -> str:
    """The address in its status."""
    (entry,) = metallb.entries_of(stage.get("service", service, "-n", SPACE))
    return entry["ip"]


def modes(stage: Stage) -> list[str]:
    """The ipMode of each address of the controller's Service."""
    return [one.get("ipMode", "") for one in metallb.entries_of(stage.get("service", CONTROLLER, "-n", SPACE))]


def give(stage: Stage, address: str) -> None:
    """Wait until MetalLB has given the controller's Service this address; its Ingress follows, as by its controller."""
    lasted = metallb.until_address(stage, CONTROLLER, SPACE, wanted=[address])
    stage.say(f"{CONTROLLER} has {address} after {lasted:.1f} s")
    stage.ingress_status("app", {"ip": address})


def restart_metallb(stage: Stage) -> None:
    """A new process of MetalLB's controller writes each status anew."""
    stage.kubectl("rollout", "restart", "deployment/controller", "-n", metallb.SYSTEM)
    stage.rolled_out("deployment/controller", namespace=metallb.SYSTEM)


def until_reconciled(stage: Stage) -> None:
    """Wait until MetalLB has answered the last change of a Service: its log ends with the end of a reconciliation."""

    def is_calm() -> bool:
        log = stage.kubectl("logs", "deployment/controller", "-n", metallb.SYSTEM).splitlines()
        lines = [one for one in log if '"ServiceReconciler"' in one]
        return bool(lines) and "end reconcile" in lines[-1]

    stage.eventually("a calm MetalLB", is_calm, seconds=30)


def client_of(stage: Stage, text: str) -> str:
    """The client's address in nginx's last line with this text."""
    line = seen_by_nginx(stage, text)
    stage.say(f"nginx: {line}")
    return line.split()[0]


def until_visitors(stage: Stage) -> None:
    """Wait until visitors outside have the page."""
    lasted = stage.eventually("a visitor's page", lambda: visit(stage, HOST) == PAGE, seconds=60)
    stage.say(f"visitors have the page after {lasted:.1f} s")


def expect_refused(stage: Stage) -> None:
    """The fault: pods are short-circuited, and nginx misses the header; visitors are served."""
    stage.eventually("a pod that gets no page", lambda: stage.curl(URL)[0] != 0, seconds=30)
    expect_fault(stage, HOST)
    log = stage.kubectl("logs", "deployment/controller", "-n", SPACE, "--since=30s")
    stage.expect("whether nginx complains", saw="broken header" in log, wanted=True)


def expect_announced(stage: Stage, service: str) -> None:
    """A node answers ARP for the Service's address outside: the one that MetalLB names."""
    address, known = address_of(stage, service), metallb.hardware_addresses(stage)
    stage.eventually("a node that announces it", lambda: metallb.announcer(stage, service) in known, seconds=60)
    node = metallb.announcer(stage, service)
    stage.expect(f"who answers for {address}", saw=neighbour(stage, address), wanted=known[node])
    stage.say(f"{address} of {service} is announced by {node}, {known[node]}")


def expect_neighbour(stage: Stage) -> None:
    """The neighbour is as MetalLB made it, for visitors and for pods."""
    stage.expect(
        "the neighbour", saw=shape(stage.get("service", NEIGHBOUR, "-n", SPACE)), wanted=stage.before["neighbour"]
    )
    address = address_of(stage, NEIGHBOUR)
    stage.expect("a visitor's page of it", saw=visit(stage, HOST, address), wanted=_PLAIN)
    resolved = f"{HOST}:80:{stage.at.in_url(address)}"
    stage.expect("a pod's page of it", saw=stage.curl(URL, "--resolve", resolved), wanted=(0, _PLAIN))


def doctor(stage: Stage, *, wanted: int) -> dict[str, Any]:
    """The doctor's findings for the host, by id, from the node, which reaches every Service."""
    words = (HOST, f"--kubeconfig={stage.node.folder}/kubeconfig", "--probe", "--output=json")
    done = stage.node.run(sys.executable, "-m", "dnsproxy", "doctor", *words, check=False)
    document = json.loads(done.stdout)
    found = {one["id"]: one for one in document["findings"]}
    stage.say(f"doctor: {document['verdict']}\n" + "\n".join(f"  {name}: {one['text']}" for name, one in found.items()))
    stage.expect("the doctor's status", saw=done.returncode, wanted=wanted)
    return found


def ip_mode(stage: Stage, *flags: str, wanted: int, text: str) -> None:
    """Run `dnsproxy ip-mode` for the controller's Service on the node; its output has this text."""
    words = [f"--kubeconfig={stage.node.folder}/kubeconfig", f"--service={SPACE}/{CONTROLLER}", *flags]
    # A watch that is not refused runs for ever.
    done = stage.node.run("timeout", "60", sys.executable, "-m", "dnsproxy", "ip-mode", *words, check=False)
    said = done.stdout + done.stderr
    stage.say(f"dnsproxy ip-mode {' '.join(flags)}:\n{said}")
    stage.expect("the exit status", saw=done.returncode, wanted=wanted)
    if text not in said:
        raise StepFailed(f"it does not say {text!r}")
