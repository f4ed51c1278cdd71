"""The doctor's account on the stage: the rights of deploy/components/doctor, without those that a state denies.

The law: the API server enforces them; nothing here pretends a refusal.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import yaml

from tests.kit.accounts import cluster_role, create_account, write_kubeconfig
from tests.kit.apiserver import ApiServer
from tests.kit.launched import ROOT

_ACCOUNT: Final = ROOT / "deploy" / "components" / "doctor" / "account.yaml"


def kubeconfig_without(api: ApiServer, denied: Iterable[str], folder: Path) -> Path:
    """The kubeconfig of an account that may read everything that the doctor reads, but not these resources."""
    without = tuple(sorted(denied))
    name = f"doctor-without-{'-'.join(without)}"
    path = folder / f"{name}.kubeconfig"
    if not path.exists():
        token = create_account(api, "default", name, [cluster_role(rules_without(without))])
        write_kubeconfig(api, token, path)
    return path


def rules_without(denied: Iterable[str]) -> list[dict[str, Any]]:
    """The rules of the doctor's ClusterRoles without some resources. Raises KeyError for one that they do not have."""
    documents = yaml.safe_load_all(_ACCOUNT.read_text(encoding="utf-8"))
    rules = [rule for one in documents if one["kind"] == "ClusterRole" for rule in one["rules"]]
    without = set(denied)
    if unknown := without - {name for rule in rules for name in rule["resources"]}:
        raise KeyError(*unknown)
    left = ({**rule, "resources": [one for one in rule["resources"] if one not in without]} for rule in rules)
    return [rule for rule in left if rule["resources"]]
