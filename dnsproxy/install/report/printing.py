"""The method print: what a person hands to the owner of a cluster's DNS, where an edit by us would be undone.

The law: nothing is written; the text is the whole of what the owner's own place takes for it, in that place's own form,
and what it brings about is what the edit would have. Where a key of our own or a stub domain would stay, that is
printed, because nobody else writes it. Pure.

Where the forms are described:

- docs.aws.amazon.com/eks/latest/userguide/updating-an-add-on.html; the add-on's schema has `corefile`
- docs.rke2.io/helm and docs.rke2.io/networking/networking_services, the HelmChartConfig of rke2-coredns
- docs.openshift.com, "DNS Operator": `servers` of dns.operator/default
- kops.sigs.k8s.io/cluster_spec: `kubeDNS.externalCoreFile`
- docs.k0sproject.io/stable/configuration: the patches of a component
- github.com/coredns/helm, charts/coredns/values.yaml
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from dnsproxy.cluster_dns.choice import Choice, Method, choose_method
from dnsproxy.cluster_dns.found import Found, FoundCorefile, Server
from dnsproxy.cluster_dns.owner import OUR_MANAGER, Form
from dnsproxy.corefile.markers import BEGIN, END, without_region
from dnsproxy.corefile.model import CorefileError
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.placing import find_site
from dnsproxy.corefile.plan import Change, plan_install
from dnsproxy.corefile.stanza import format_address
from dnsproxy.corefile.zones import ROOT
from dnsproxy.install.change.edits import Wanted
from dnsproxy.install.change.planning import check_loop, plan_apply
from dnsproxy.install.change.refusal import Refusal, refusal_of
from dnsproxy.install.change.routes import find_routes
from dnsproxy.install.change.zones import check_free, check_named, route_of
from dnsproxy.install.report.printing_values import chart_values
from dnsproxy.install.report.printing_yaml import format_json, format_yaml


@dataclass(frozen=True, slots=True)
class Printed:
    """What to hand on."""

    text: str
    """For stdout: YAML, JSON or lines of a Corefile. It ends in a line end."""
    where: str
    """Where it goes, as a sentence without its end; may hold text from the cluster."""
    apply: tuple[str, ...] = ()
    """Commands that bring it there, in order; NAME and FILE are to be filled in."""
    notes: tuple[str, ...] = ()
    """Sentences without their ends: what works differently than one may think."""


def print_for(found: Found, choice: Choice, wanted: Wanted) -> Printed:
    """What to hand to the owner of the DNS that was found. Raises Refusal; nothing may be wanted of `found` any more.

    `choice` is that of the method print, or any other that a person would rather have in other hands.
    """
    server = found.asked_by_pods
    if server is None:
        raise Refusal(choice.why)
    lasting = choose_method(found)
    if lasting.method in (Method.IMPORT, Method.STUB_DOMAINS):
        return _print_config_map(found, lasting, wanted)
    if server.corefile is None or server.corefile.value is None:
        raise Refusal(choice.why)
    check_loop(found, wanted)
    form = choice.form or server.corefile.owner.form or Form.STANZA
    printed = _PRINTERS[form](server, server.corefile, wanted)
    return replace(printed, notes=tuple(dict.fromkeys([*printed.notes, *choice.what_else])))


def _print_config_map(found: Found, choice: Choice, wanted: Wanted) -> Printed:
    """The keys of a ConfigMap that nobody else writes, such as AKS's and k3s's `coredns-custom`."""
    edits = plan_apply(found, choice, wanted)
    manifests = []
    for change in edits.changes:
        data = {entry.name: entry.new for entry in change.data if entry.new is not None}
        if not data:
            continue
        annotations = {entry.name: entry.new for entry in change.annotations if entry.new is not None}
        metadata: dict[str, Any] = {"name": change.source.name, "namespace": change.source.namespace}
        if annotations:
            metadata["annotations"] = annotations
        manifests.append(format_yaml({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
    where = f"these keys of the ConfigMap, beside those that it has: {choice.target}"
    # The key `stubDomains` may be somebody's already; what is in it is in the text too.
    force = " --force-conflicts" if choice.method is Method.STUB_DOMAINS else ""
    apply = f"kubectl apply --server-side --field-manager={OUR_MANAGER}{force} -f FILE"
    return Printed("---\n".join(manifests), where, (apply,), edits.notes)


def _print_eks(server: Server, corefile: FoundCorefile, wanted: Wanted) -> Printed:
    change = _planned(server, corefile, wanted)
    read = "aws eks describe-addon --cluster-name NAME --addon-name coredns --query addon.configurationValues"
    write = "aws eks update-addon --cluster-name NAME --addon-name coredns"
    notes = (
        "configuration values are written as a whole: put in again what the first command shows, such as tolerations",
        "from then on the whole Corefile is yours: EKS adds nothing of its own to it with an upgrade",
    )
    return Printed(
        format_json({"corefile": change.new}),
        "the configuration values of the EKS add-on coredns",
        (read, f"{write} --configuration-values file://FILE"),
        (*notes, *change.notes),
    )


def _print_kops(server: Server, corefile: FoundCorefile, wanted: Wanted) -> Printed:
    change = _planned(server, corefile, wanted)
    spec = {"spec": {"kubeDNS": {"provider": "CoreDNS", "externalCoreFile": change.new}}}
    note = "an externalCoreFile is the whole Corefile: kops' other options for it count no more"
    return Printed(
        format_yaml(spec),
        "the kops cluster spec, under spec.kubeDNS, beside what stands there",
        ("kops edit cluster --name NAME", "kops update cluster --name NAME --yes"),
        (note, *change.notes),
    )


def _print_k0s(server: Server, corefile: FoundCorefile, wanted: Wanted) -> Printed:
    change = _planned(server, corefile, wanted)
    target = {"kind": "ConfigMap", "name": corefile.source.name, "namespace": corefile.source.namespace}
    patch = {"type": "merge", "content": format_yaml({"data": {corefile.key: change.new}})}
    spec = {"spec": {"network": {"coreDNS": {"patches": [{"target": target, "patch": patch}]}}}}
    notes = (
        "k0s calls the patches of its components experimental, and older versions have none",
        "the patch holds the whole Corefile: with an upgrade of k0s, compare it with that of the new version",
    )
    return Printed(
        format_yaml(spec),
        "the ClusterConfig of k0s (k0s.yaml on each controller, or spec.k0s.config of k0sctl)",
        ("sudo k0s stop", "sudo k0s start"),
        (*notes, *change.notes),
    )


def _print_values(server: Server, corefile: FoundCorefile, wanted: Wanted) -> Printed:
    change = _planned(server, corefile, wanted)
    return Printed(
        format_yaml(_values_of(change, corefile)),
        "the values of the coredns Helm chart; where it is a part of another chart, under its name there",
        ("helm upgrade NAME coredns/coredns --namespace NAMESPACE --reuse-values -f FILE",),
        (_WHOLE_LIST, *change.notes),
    )


def _print_rke2(server: Server, corefile: FoundCorefile, wanted: Wanted) -> Printed:
    change = _planned(server, corefile, wanted)
    config = {
        "apiVersion": "helm.cattle.io/v1",
        "kind": "HelmChartConfig",
        "metadata": {"name": "rke2-coredns", "namespace": "kube-system"},
        "spec": {"valuesContent": format_yaml(_values_of(change, corefile))},
    }
    note = "where a HelmChartConfig rke2-coredns is there already, put the values into its valuesContent"
    return Printed(
        format_yaml(config),
        "a HelmChartConfig, which RKE2 puts over the values of its own chart",
        ("kubectl get helmchartconfig -n kube-system rke2-coredns -o yaml", "kubectl apply -f FILE"),
        (note, _WHOLE_LIST, *change.notes),
    )


def _print_openshift(_server: Server, corefile: FoundCorefile, wanted: Wanted) -> Printed:
    check_named(wanted.zones, "the DNS operator takes servers for zones, and none for .")
    routes = find_routes(corefile)
    check_free(wanted.zones, routes)
    addresses = [format_address(address) for address in wanted.addresses]
    behind = [route_of(zone, routes.forwards(), wanted.zones).forward for zone in wanted.zones]
    known = {format_address(endpoint): None for forward in behind for endpoint in forward.endpoints()}
    plugin = {"policy": "Sequential", "upstreams": [*addresses, *known]}
    zones = [zone.removesuffix(".") for zone in wanted.zones]
    server_of_ours = {"name": OUR_MANAGER, "zones": zones, "forwardPlugin": plugin}
    spec = {
        "apiVersion": "operator.openshift.io/v1",
        "kind": "DNS",
        "metadata": {"name": "default"},
        "spec": {"servers": [server_of_ours]},
    }
    notes = ["servers is one list: put ours beside those that stand there"]
    if not known:
        notes.append(
            "there is no second choice, because a server of the DNS operator takes addresses alone: while no dnsproxy "
            "is there, names of these zones do not resolve; add your resolvers' addresses behind ours"
        )
    if len(known) + len(addresses) > _OPENSHIFT_UPSTREAMS:
        raise Refusal(f"the DNS operator takes {_OPENSHIFT_UPSTREAMS} upstreams, and these would be more")
    return Printed(
        format_yaml(spec),
        "the DNS operator's custom resource",
        ("oc edit dns.operator/default",),
        tuple(notes),
    )


def _print_stanza(server: Server, corefile: FoundCorefile, wanted: Wanted) -> Printed:
    change = _planned(server, corefile, wanted)
    lines = change.new.splitlines(keepends=True)
    begin = next(at for at, line in enumerate(lines) if BEGIN in line)
    end = next(at for at, line in enumerate(lines) if END in line)
    text = "".join(lines[begin : end + 1])
    # A directive may stand on the line of its block's brace, and so may our marker then.
    text = text[text.index(BEGIN) :] if lines[begin].strip() != BEGIN else text
    bare = without_region(parse_corefile(corefile.text))
    site = find_site(bare, wanted.zones or (ROOT,))
    line = bare.tokens[site.index].line
    where = f"the block of ., right before line {line} of {corefile.key} in ConfigMap {corefile.source}, at its owner's"
    return Printed(text.replace("\r\n", "\n"), where, (), change.notes)


_PRINTERS: Final[dict[Form, Callable[[Server, FoundCorefile, Wanted], Printed]]] = {
    Form.EKS_ADDON: _print_eks,
    Form.HELM_CHART_CONFIG: _print_rke2,
    Form.OPENSHIFT_DNS: _print_openshift,
    Form.KOPS_CLUSTER: _print_kops,
    Form.K0S_CLUSTER: _print_k0s,
    Form.HELM_VALUES: _print_values,
    Form.STANZA: _print_stanza,
}
_WHOLE_LIST: Final = "servers is one list, and this one takes the place of yours: comments are lost, all else is in it"
_OPENSHIFT_UPSTREAMS: Final = 15


def _planned(server: Server, corefile: FoundCorefile, wanted: Wanted) -> Change:
    """The whole Corefile with our stanza."""
    zones = wanted.zones or (ROOT,)
    try:
        return plan_install(corefile.text, addresses=wanted.addresses, zones=zones, coredns_version=server.version)
    except CorefileError as error:
        raise _refusal(error, corefile) from None


def _values_of(change: Change, corefile: FoundCorefile) -> dict[str, Any]:
    try:
        return chart_values(parse_corefile(change.new))
    except CorefileError as error:
        raise _refusal(error, corefile) from None


def _refusal(error: CorefileError, corefile: FoundCorefile) -> Refusal:
    return refusal_of(error, f"{corefile.key} in ConfigMap {corefile.source}")
