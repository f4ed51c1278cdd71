"""The programs' calls to the API server, calls that all must be refused, and `dnsproxy serve` as an account.

The law: a row is a call as `parse_call` reads it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.kit.ports import free_ports
from tests.kit.processes import end_process, wait_for

DNSPROXY = """
list ingresses
watch ingresses
list ingressclasses
watch ingressclasses
list namespaces
watch namespaces
list services in switchback
watch services in switchback
list endpointslices in switchback
watch endpointslices in switchback
list configmaps coredns in kube-system
watch configmaps coredns in kube-system
list configmaps coredns-custom in kube-system
watch configmaps coredns-custom in kube-system
list configmaps nodelocaldns in kube-system
list configmaps kube-dns in kube-system
list configmaps rke2-coredns-rke2-coredns in kube-system
list configmaps dns-default in openshift-dns
watch configmaps dns-default in openshift-dns
"""

RELAY = """
list services
watch services
list services in switchback
watch services in switchback
list services controller in ingress-nginx
list endpointslices
watch endpointslices
list endpointslices in ingress-nginx
"""

GATEWAYS = """
list gateways
watch gateways
list httproutes
watch httproutes
list grpcroutes
watch grpcroutes
list listenersets
watch listenersets
list tlsroutes
watch tlsroutes
"""

PUBLISHER = """
list dnsendpoints in switchback
create dnsendpoints in switchback
patch dnsendpoints any in switchback
delete dnsendpoints any in switchback
"""

DOCTOR = """
list ingresses
list ingressclasses
list gatewayclasses
list gateways
list listenersets
list xlistenersets
list httproutes
list grpcroutes
list tlsroutes
list dnsendpoints
list namespaces
list nodes
list services
get services kube-dns in kube-system
get services relay in switchback
list deployments in kube-system
list deployments in switchback
list daemonsets
list daemonsets in kube-system
list endpointslices in kube-system
list endpointslices in switchback
get configmaps coredns in kube-system
get configmaps any in default
get felixconfigurations default
list clienttrafficpolicies
get mutatingadmissionpolicies switchback-ip-mode
get mutatingadmissionpolicybindings switchback-ip-mode
get pods/proxy any in switchback
"""

NOT_DOCTOR = """
watch services
watch ingresses
watch nodes
get namespaces default
list configmaps
patch configmaps any in default
get mutatingadmissionpolicies any
list mutatingadmissionpolicies
get mutatingadmissionpolicybindings any
list mutatingadmissionpolicybindings
get felixconfigurations any
list felixconfigurations
get pods any in switchback
get pods/log any in switchback
create pods/proxy any in switchback
get pods/proxy any in kube-system
get pods/proxy any in default
get services/proxy any in switchback
get nodes/proxy any
create jobs in switchback-doctor
create pods in switchback-doctor
patch cronjobs doctor in switchback-doctor
list secrets in switchback-doctor
create serviceaccounts/token doctor in switchback-doctor
"""

NEVER_ALLOWED = """
list secrets
get secrets any in switchback
get secrets any in kube-system
list configmaps kubeadm-config in kube-system
watch configmaps in kube-system
list configmaps in kube-system
get configmaps coredns in kube-system
list configmaps settings in kube-system
list configmaps in openshift-dns
update configmaps coredns in kube-system
patch configmaps coredns in kube-system
delete configmaps coredns in kube-system
create configmaps in switchback
list services
list services in kube-system
list services in default
get services relay-nginx in switchback
create services in switchback
patch services relay-nginx in switchback
patch services dnsproxy in switchback
delete services relay-nginx in switchback
create ingresses in default
update ingresses any in default
patch ingresses any in default
delete ingresses any in default
deletecollection ingresses in default
get ingresses any in default
list pods
create pods in switchback
create pods in kube-system
create pods/exec any in switchback
create serviceaccounts/token dnsproxy in switchback
list nodes
get nodes any
list deployments in switchback
patch deployments dnsproxy in switchback
list endpointslices
list endpointslices in kube-system
create endpointslices in switchback
patch endpointslices any in switchback
create roles in switchback
patch roles dnsproxy-target in switchback
create clusterrolebindings
list networkpolicies in switchback
delete networkpolicies nothing-else in switchback
create leases in switchback
get leases switchback-operate in switchback
create namespaces
delete namespaces switchback
"""


def rows(*texts: str) -> list[str]:
    """The calls of these texts, each once."""
    return list(dict.fromkeys(line for text in texts for line in text.splitlines() if line))


@contextmanager
def serving(*arguments: str, kubeconfig: Path, folder: Path, until: str = "") -> Iterator[Path]:
    """`dnsproxy serve` from its readiness, or from a word in its log, to the end of the block. Returns the log."""
    dns, admin = free_ports(2)
    log = folder / "dnsproxy.log"
    command = [sys.executable, "-m", "dnsproxy", "serve", f"--listen=127.0.0.1:{dns}", f"--admin=127.0.0.1:{admin}"]
    command += ["--upstream=127.0.0.1:9", "--target=auto", "--routes-namespace=switchback"]
    command += [f"--kubeconfig={kubeconfig}"]
    with log.open("wb") as stderr:
        process = subprocess.Popen([*command, *arguments], stderr=stderr)
    try:
        wait_for(
            lambda: until in log.read_text().lower() if until else is_ready(admin),
            process=process,
            log=log,
        )
        yield log
    finally:
        end_process(process)


def is_ready(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10):
            return True
    except (URLError, OSError):
        return False
