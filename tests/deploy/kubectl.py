"""kubectl on a test's API server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Final

from tests.deploy.manifests import Manifest
from tests.kit.apiserver import ApiServer
from tests.kit.programs import program

LABEL: Final = "app.kubernetes.io/part-of=switchback"
KINDS: Final = (
    "clusterroles,clusterrolebindings,roles,rolebindings,deployments,daemonsets,jobs,cronjobs,services,configmaps,"
    "serviceaccounts,networkpolicies,resourcequotas,poddisruptionbudgets,horizontalpodautoscalers,servicemonitors,"
    "podmonitors,prometheusrules,mutatingadmissionpolicies,mutatingadmissionpolicybindings"
)
"""Every object with the label except namespaces, which only the controller manager ends."""


def kubectl(server: ApiServer, *arguments: str, given: Sequence[Manifest] | None = None) -> str:
    """Run kubectl with `given` as stdin. Returns its output. Fails if kubectl fails or the API server warns."""
    command = [program("kubectl"), "--kubeconfig", str(server.kubeconfig), *arguments]
    text = None if given is None else json.dumps({"apiVersion": "v1", "kind": "List", "items": list(given)})
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert "Warning" not in done.stderr, done.stderr
    return done.stdout
