"""The Corefiles that owners render from printed texts.

The law: each function does what the owner's own template does and no more; a real CoreDNS loads the result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from textwrap import indent
from typing import Any

import yaml

from dnsproxy.corefile.model import Corefile
from dnsproxy.install.report.printing import Printed


def from_eks(printed: Printed, _corefile: str) -> str:
    """The value `corefile` is the Corefile."""
    return str(json.loads(printed.text)["corefile"])


def from_kops(printed: Printed, _corefile: str) -> str:
    return str(yaml.safe_load(printed.text)["spec"]["kubeDNS"]["externalCoreFile"])


def from_k0s(printed: Printed, _corefile: str) -> str:
    """A merge patch (RFC 7386) of the ConfigMap, written as YAML; k0s refuses every other word for its type."""
    (patch,) = yaml.safe_load(printed.text)["spec"]["network"]["coreDNS"]["patches"]
    assert patch["target"] == {"kind": "ConfigMap", "name": "coredns", "namespace": "kube-system"}
    assert patch["patch"]["type"] == "MergePatch"
    return str(yaml.safe_load(patch["patch"]["content"])["data"]["Corefile"])


def from_values(printed: Printed, _corefile: str) -> str:
    return render_chart(yaml.safe_load(printed.text))


def from_helm_chart_config(printed: Printed, _corefile: str) -> str:
    return render_chart(yaml.safe_load(yaml.safe_load(printed.text)["spec"]["valuesContent"]))


def from_openshift(printed: Printed, corefile: str) -> str:
    """The operator writes a server block for each of `servers` in front of its own."""
    resource = yaml.safe_load(printed.text)
    assert (resource["apiVersion"], resource["kind"], resource["metadata"]["name"]) == (
        "operator.openshift.io/v1",
        "DNS",
        "default",
    )
    blocks = ""
    for server in resource["spec"]["servers"]:
        keys = " ".join(f"{zone}:5353" for zone in server["zones"])
        plugin = server["forwardPlugin"]
        policy = plugin["policy"].lower()
        forward = f"forward . {' '.join(plugin['upstreams'])} {{\n        policy {policy}\n    }}"
        blocks += f"# {server['name']}\n{keys} {{\n    {forward}\n    errors\n    cache 900\n}}\n"
    return blocks + corefile


def from_stanza(printed: Printed, corefile: str) -> str:
    """A person puts the lines where they are told to."""
    number = int(printed.where.partition("right before line ")[2].partition(" ")[0])
    lines = corefile.splitlines(keepends=True)
    return "".join([*lines[: number - 1], printed.text, *lines[number - 1 :]])


RENDERERS: Mapping[str, Callable[[Printed, str], str]] = {
    "eks-addon": from_eks,
    "kops-forward": from_kops,
    "k0s": from_k0s,
    "cozystack": from_values,
    "rke2": from_helm_chart_config,
    "openshift": from_openshift,
    "kubeadm": from_stanza,
    "talos": from_stanza,
    "minikube": from_stanza,
    "eks-self-managed": from_stanza,
}
"""By the cluster of the corpus that has such an owner."""


def render_chart(values: Mapping[str, Any]) -> str:
    """The Corefile that the coredns chart makes of its values."""
    lines = [
        " ".join([name, *([str(extra["parameters"])] if extra.get("parameters") else [])])
        for name, extra in values.get("extraConfig", {}).items()
    ]
    for server in values["servers"]:
        zones = " ".join(f"{zone.get('scheme', '')}{zone.get('zone', '.')}" for zone in server["zones"])
        lines.append(f"{zones}:{server['port']} {{")
        for plugin in server["plugins"]:
            line = f"    {plugin['name']}"
            if plugin.get("parameters"):
                line += f" {plugin['parameters']}"
            if plugin.get("configBlock"):
                line += f" {{\n{indent(plugin['configBlock'], ' ' * 8)}\n    }}"
            lines.append(line)
        lines.append("}")
    return "\n".join(lines)


def meaning(corefile: Corefile) -> list[Any]:
    """What CoreDNS reads: keys, directives in their order, imports; spacing and comments left out."""
    return [
        [
            [(key.origin.zone, key.origin.port, key.origin.scheme) for key in block.keys],
            [(one.name, [word.text for word in one.words]) for one in block.directives],
            [one.pattern for one in block.imports],
        ]
        for block in corefile.blocks
    ] + [one.pattern for one in corefile.imports]
