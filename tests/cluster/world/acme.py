"""cert-manager and a certificate authority outside: an HTTP-01 issuance that fails before, and needs no help after.

The law: as in scenes.py. The authority looks at hosts as the internet does, by the public DNS and the load balancer;
cert-manager's self check looks as pods do. https://cert-manager.io/docs/troubleshooting/acme/
"""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any, Final

from tests.cluster.acting import manifest, restart
from tests.cluster.stage import Stage
from tests.cluster.steps.outside import Outside, inside, start_outside
from tests.cluster.steps.steering import until_steered
from tests.cluster.world.contour import CONTOUR
from tests.cluster.world.controller import MANIFESTS
from tests.cluster.world.images import CERT_MANAGER
from tests.kit.programs import program

SPACE: Final = "cert-manager"
AUTHORITY: Final = "pebble"
PORT: Final = 14000
MANAGEMENT: Final = 15000
SELF_CHECK: Final = "failed to perform self check"
SOLVER: Final = "acme.cert-manager.io/http01-solver=true"
GOAL: Final = 30.0
"""Seconds from the first decision for the class until the certificate is ready."""
LONGEST: Final = 180.0
BLOG: Final = "blog.contour.example.org"
_VALID: Final = {"default": {"description": "the scene's", "validityPeriod": 7_776_000}}


def issuance_fails(stage: Stage) -> None:
    """Before: cert-manager's self check does not reach the host that the whole world reaches; no certificate."""
    start_authority(stage)
    stage.kubectl("apply", "--server-side", "-f", program("cert-manager-crds"))
    apply_chart(stage)
    directory = f"https://{stage.at.in_url(stage.at.authority)}:{PORT}/dir"
    stage.kubectl(
        "apply", "-f", "-", given=manifest(stage, "cert-manager.yaml", folder=MANIFESTS, ACME_DIRECTORY=directory)
    )
    stage.rolled_out("deployment/cert-manager", namespace=SPACE)
    # What the check asks for is there, and everybody outside gets it.
    stage.eventually("a solver", lambda: stage.get("pods", "-l", SOLVER)["items"], seconds=LONGEST)
    stage.kubectl("wait", "pod", "-l", SOLVER, "--for=condition=Ready", "--timeout=120s")
    lasted = stage.eventually("a failed self check", lambda: SELF_CHECK in challenge(stage), seconds=LONGEST)
    stage.say(f"the challenge says after {lasted:.0f} s: {challenge(stage)}")
    stage.expect("a certificate", saw=is_ready(stage, "shop"), wanted=False)


def certificate_is_issued(stage: Stage) -> None:
    """With Switchback the certificate that waited is ready within 30 s, with no further step."""
    until_steered(stage, CONTOUR.subject)
    lasted = stage.eventually("the certificate", lambda: is_ready(stage, "shop"), seconds=GOAL)
    stage.say(f"the certificate is ready {lasted:.0f} s after the class is steered")


def certificate_is_renewed(stage: Stage) -> None:
    """A renewal while dnsproxy restarts: the next certificate comes all the same."""
    before = secret(stage, "shop-tls")
    condition = {"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "renewed"}
    # A patch has no resourceVersion: cert-manager writes this status too.
    patch = [{"op": "add", "path": "/status/conditions/-", "value": condition}]
    stage.kubectl("patch", "certificate", "shop", "--subresource=status", "--type=json", "-p", json.dumps(patch))
    begun = time.monotonic()
    restart(stage, "deployment/dnsproxy")
    stage.eventually("another certificate", lambda: secret(stage, "shop-tls") != before, seconds=LONGEST)
    stage.eventually("a ready one", lambda: is_ready(stage, "shop"), seconds=LONGEST)
    stage.say(f"renewed in {time.monotonic() - begun:.0f} s")


def new_ingress_gets_one(stage: Stage) -> None:
    """A new Ingress with a TLS section gets its certificate with no further step, and serves it to pods."""
    begun = time.monotonic()
    stage.kubectl("apply", "-f", str(MANIFESTS / "blog.yaml"))
    stage.eventually("its certificate", lambda: is_ready(stage, "blog-tls"), seconds=LONGEST)
    stage.say(f"issued {time.monotonic() - begun:.0f} s after kubectl returned")
    roots = authority_roots(stage)

    def page() -> str:
        # By the cluster's DNS, as pods resolve it.
        address = (stage.dig(BLOG) or [stage.at.public])[0]
        words = ["curl", "-sS", "--max-time", "4", "--cacert", str(roots)]
        resolved = ["--resolve", f"{BLOG}:443:{stage.at.in_url(address)}"]
        return stage.node.run(*words, *resolved, f"https://{BLOG}/", check=False).stdout

    stage.eventually("its page", lambda: page().startswith(f"hello from {BLOG}"), seconds=30)


def apply_chart(stage: Stage) -> None:
    """cert-manager's controller from its own chart; not what only checks objects, and injects certificates for that."""
    folder, version = stage.folder, CERT_MANAGER.name.rpartition(":")[2]
    versions = [f"--version={version}", f"--app-version={version}"]
    # Its release sets the version, which names the images.
    run_helm("package", program("cert-manager-chart"), f"--destination={folder}", *versions)
    shown = [f"--show-only=templates/{one}.yaml" for one in ("serviceaccount", "rbac", "deployment")]
    chart = f"{folder}/cert-manager-{version}.tgz"
    rendered = run_helm("template", "cert-manager", chart, f"--namespace={SPACE}", *shown)
    stage.kubectl("create", "namespace", SPACE)
    stage.kubectl("apply", "-f", "-", given=rendered)


def run_helm(*words: str) -> str:
    """What helm prints."""
    return subprocess.run([program("helm"), *words], check=True, capture_output=True, text=True).stdout


def start_authority(stage: Stage) -> None:
    """Pebble, which asks the public DNS and connects to port 80 of what it answers."""
    at, folder = stage.at, stage.folder
    pair = {"certificate": str(folder / "pebble.crt"), "privateKey": str(folder / "pebble.key")}
    names = f"subjectAltName=IP:{at.authority}"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=authority", "-addext", names]
    words += ["-keyout", pair["privateKey"], "-out", pair["certificate"]]
    subprocess.run([program("openssl"), *words], check=True, capture_output=True)
    listening = {
        "listenAddress": f"{at.in_url(at.authority)}:{PORT}",
        "managementListenAddress": f"{at.in_url(at.authority)}:{MANAGEMENT}",
    }
    config: dict[str, Any] = {**listening, **pair, "httpPort": 80, "tlsPort": 443, "profiles": _VALID}
    (folder / "pebble.json").write_text(json.dumps({"pebble": config}), encoding="utf-8")
    dns = f"{at.in_url(at.node(1))}:53"
    pebble = [program("pebble"), "-config", str(folder / "pebble.json"), "-dnsserver", dns]
    settings = ["env", "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0"]
    one = Outside(AUTHORITY, [(at, at.authority) for at in stage.cluster.at])
    start_outside(stage, one, *settings, *pebble)


def authority_roots(stage: Stage) -> Path:
    """A file with the authority's root certificate."""
    url = f"https://{stage.at.in_url(stage.at.authority)}:{MANAGEMENT}/roots/0"
    words = inside(stage, AUTHORITY, "curl", "-sS", "--insecure", url)
    file = stage.folder / "roots.pem"
    file.write_text(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    return file


def challenge(stage: Stage) -> str:
    """What the challenges say of themselves."""
    found = stage.get("challenges")["items"]
    return "; ".join(str((one.get("status") or {}).get("reason", "")) for one in found)


def is_ready(stage: Stage, certificate: str) -> bool:
    """Whether a Certificate is ready."""
    found = stage.get("certificates")["items"]
    conditions = [
        one
        for every in found
        if every["metadata"]["name"] == certificate
        for one in (every.get("status") or {}).get("conditions", ())
    ]
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def secret(stage: Stage, name: str) -> str:
    """The certificate in a Secret."""
    return str(stage.get("secret", name)["data"]["tls.crt"])
