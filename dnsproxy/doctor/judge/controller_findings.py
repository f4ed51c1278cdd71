"""The findings about one controller.

The law: every state of short circuit, header and load balancer gives exactly one finding or Unseen about the short
circuit, and at most one about the header.
"""

from __future__ import annotations

from collections.abc import Iterator

from dnsproxy.doctor.facts.model import Facts
from dnsproxy.doctor.facts.probes import Header, Outcome
from dnsproxy.doctor.judge.controller import Controller
from dnsproxy.doctor.judge.findings import Finding, Remedy, Severity, Unseen
from dnsproxy.doctor.judge.header_annotations import Sends
from dnsproxy.doctor.judge.header_mode import HeaderMode, describe, versions_of
from dnsproxy.doctor.judge.paths import name_to_ask
from dnsproxy.doctor.judge.remedies import (
    annotate,
    header_on,
    install_step,
    look_from_inside,
    probe_by_hand,
    quoted,
    remedies,
)
from dnsproxy.doctor.judge.short_circuit import Answer


def judge_controller(controller: Controller, facts: Facts, *, answered: bool) -> Iterator[Finding | Unseen]:
    """The findings about one Service; `answered`: the cluster's DNS gives pods an address that works."""
    yield from _judge_header(controller)
    if controller.loops_back:
        yield _loopback(controller, answered=answered)
    elif controller.short.empty:
        yield from _judge_without_balancer(controller, facts, answered=answered)
    elif controller.affected is Answer.YES:
        yield _affected(controller, facts, answered=answered)
    elif controller.affected is Answer.NO:
        yield (
            _unserved(controller, facts)
            if controller.reached is Answer.NO and not answered
            else _unaffected(controller)
        )
    else:
        yield from _unknown(controller, facts, answered=answered)


def _evidence(controller: Controller) -> tuple[str, ...]:
    guessed = (f"{controller.about} was found by its labels: no status names it",) if controller.path.guessed else ()
    return (*guessed, *controller.short.evidence, *_header_evidence(controller), *describe(controller.balancer_probes))


def _header_evidence(controller: Controller) -> tuple[str, ...]:
    if controller.declared:
        return (f"the controller {controller.header_mode.value}, according to {controller.path.service.settings_from}",)
    return describe(controller.controller_probes)


def _affected(controller: Controller, facts: Facts, *, answered: bool) -> Finding:
    past = f"past the load balancer {', '.join(controller.short.addresses)}".rstrip()
    why = "the controller never gets the PROXY header that it requires"
    ignored = controller.short.ignored
    text = f"pods are short-circuited {past}, so {why}"
    if ignored:
        ignores = f"although ipMode is Proxy, because {controller.plane.name} ignores it"
        text = f"pods are short-circuited {past} {ignores}; {why}"
    if answered:
        cure = "; the cluster's DNS gives them an address that works instead"
        return _finding(controller, "short-circuit-answered", Severity.OK, text + cure)
    steps = remedies(controller.path.service, controller.provider, controller.plane, facts)
    if ignored:
        steps = (Remedy(controller.plane.remedy), steps[-1])
    return _finding(controller, "ip-mode-ignored" if ignored else "short-circuited", Severity.PROBLEM, text, steps)


def _unaffected(controller: Controller) -> Finding:
    if controller.reached is Answer.YES:
        text = "a pod that dials the load balancer's address is served"
        return _finding(controller, "reached", Severity.OK, text)
    if controller.short.state is Answer.NO:
        text = "pods reach the load balancer like all other clients: its status has nothing to short-circuit"
        return _finding(controller, "no-short-circuit", Severity.OK, text)
    text = "pods are short-circuited past the load balancer, but the controller serves them"
    return _finding(controller, "short-circuit-harmless", Severity.OK, text)


def _unserved(controller: Controller, facts: Facts) -> Finding:
    text = "a pod that dials the load balancer's address is not served, and no short circuit explains it"
    first = Remedy("see whether clients outside are served, and what the controller logs when a pod asks")
    return _finding(
        controller, "balancer-unserved", Severity.WARNING, text, (first, install_step(facts, controller.provider))
    )


def _unknown(controller: Controller, facts: Facts, *, answered: bool) -> Iterator[Finding | Unseen]:
    past = ", ".join(controller.short.addresses)
    if controller.short.state is Answer.UNKNOWN:
        what = f"whether {controller.plane.name} short-circuits pods past {past} ({controller.about})"
        yield Unseen(what, "; ".join(controller.short.evidence), (look_from_inside(facts),), matters=not answered)
        return
    likely = controller.sends in (Sends.YES, Sends.SOME) and not answered
    if likely:
        text = (
            f"pods are short-circuited past the load balancer {past}, which {controller.sends.value}: "
            "a controller that requires it refuses them"
        )
        steps = remedies(controller.path.service, controller.provider, controller.plane, facts)
        yield _finding(controller, "short-circuit-likely", Severity.WARNING, text, steps)
    hostname = name_to_ask(next(iter(controller.path.hostnames), "app.example.org"))
    lines = tuple(probe_by_hand(controller.path.service, hostname, header) for header in (Header.PLAIN, Header.V1))
    by_hand = Remedy("or ask by hand, once without and once with the header; 000 means no answer", lines)
    why = (
        "its ports were not dialled"
        if not facts.probed
        else "; ".join(_header_evidence(controller)) or "its ports show nothing"
    )
    what = f"whether the controller of {controller.about} requires the PROXY header; pods are short-circuited to it"
    yield Unseen(what, why, (look_from_inside(facts), by_hand), matters=not answered)


def _judge_without_balancer(controller: Controller, facts: Facts, *, answered: bool) -> Iterator[Finding | Unseen]:
    failed = controller.reached is Answer.NO
    if controller.reached is Answer.YES:
        yield _finding(controller, "reached", Severity.OK, "a pod that dials the public address is served")
    elif failed and not answered:
        outcomes = {probe.outcome for probe in controller.balancer_probes}
        lost = outcomes <= {Outcome.UNREACHABLE, Outcome.REFUSED}
        text = (
            "pods cannot reach the public address: typical of a router without NAT loopback"
            if lost
            else "pods that dial the public address reach the controller without the PROXY header that it requires"
        )
        steps = remedies(controller.path.service, controller.provider, controller.plane, facts)
        yield _finding(controller, "no-loopback" if lost else "header-lost", Severity.PROBLEM, text, steps)
    elif answered:
        text = "there is no load balancer in the status; the cluster's DNS gives pods an address that works"
        yield _finding(controller, "no-load-balancer", Severity.OK, text)
    else:
        text = "its status has no load balancer address: normal on bare metal; in a cloud, it is not ready yet"
        yield _finding(controller, "no-load-balancer", Severity.INFO, text)
        if not facts.probed:
            what = f"whether pods reach the hosts of {controller.about} by their public address"
            yield Unseen(what, "nothing was dialled", (look_from_inside(facts),))


def _loopback(controller: Controller, *, answered: bool) -> Finding:
    text = (
        "an AWS NLB that preserves the client's address drops a pod's connection whenever it chooses the node of that "
        "pod: occasional time-outs, with or without the PROXY header"
    )
    if answered:
        return _finding(
            controller,
            "nlb-loopback-answered",
            Severity.OK,
            f"{text}; the cluster's DNS gives pods an address that works",
        )
    key = "service.beta.kubernetes.io/aws-load-balancer-target-group-attributes"
    value = "preserve_client_ip.enabled=false"
    old = controller.path.service.annotations.get(key, "")
    others = [part for part in old.split(",") if part.strip() and not part.strip().startswith("preserve_client_ip")]
    lines = (annotate(controller.path.service, key, ",".join([value, *map(str.strip, others)])),)
    steps = (
        Remedy(
            "turn client address preservation off at the NLB; with PROXY v2 the controller still learns the address",
            lines,
        ),
        Remedy(
            "or answer the names with the controller's own ClusterIP, or with the relay if it requires the header",
            ("kubectl apply -k deploy/overlays/eks", "dnsproxy install"),
        ),
    )
    return _finding(controller, "nlb-loopback", Severity.WARNING, text, steps)


def _judge_header(controller: Controller) -> Iterator[Finding]:
    """The controller's header mode compared with what the load balancer sends."""
    said = f"the load balancer of {controller.provider.name} {controller.sends.value}"
    if controller.header_mode is HeaderMode.DEAD:
        text = "the controller's Service accepts no connection"
        namespace, _ = quoted(controller.path.service.key)
        step = Remedy("see whether its pods are ready", (f"kubectl -n {namespace} get endpointslices,pods",))
        yield _of_header(controller, "controller-dead", Severity.PROBLEM, text, (step,))
    elif controller.header_mode is HeaderMode.REJECTS and controller.sends is Sends.YES:
        text = f"{said}, but the controller rejects it: all clients get 400"
        yield _of_header(controller, "header-unwanted", Severity.PROBLEM, text, (_accept_header(controller),))
    elif controller.header_mode is HeaderMode.REQUIRES and controller.sends is Sends.NO:
        yield _missing(controller, said)
    elif controller.header_mode is HeaderMode.ACCEPTS:
        text = "the controller accepts connections with and without the PROXY header: pods need no relay for it"
        lines = (f"DNSPROXY_TARGET_FOR={controller.path.ingress_class}=service:{controller.path.service.key}",)
        step = Remedy("if Switchback answers its hosts, answer with its Service directly", lines)
        yield _of_header(controller, "takes-both", Severity.INFO, text, (step,))
    elif controller.header_mode is HeaderMode.REQUIRES:
        versions = " and ".join(versions_of(controller.controller_probes))
        text = f"the controller requires the PROXY header{f' ({versions} understood)' if versions else ''}"
        yield _of_header(controller, "header-required", Severity.OK, text)


def _missing(controller: Controller, said: str) -> Finding:
    if controller.provider.never_sends:
        text = f"the controller requires the PROXY header; {controller.provider.note or said}"
        return _of_header(controller, "header-from-outside", Severity.INFO, text)
    text = f"{said}, but the controller requires it: no client from outside is served"
    steps = (
        header_on(controller.path.service, controller.provider),
        Remedy('or turn it off at the controller; ingress-nginx: `use-proxy-protocol: "false"` in its ConfigMap'),
    )
    return _of_header(controller, "header-missing", Severity.PROBLEM, text, steps)


def _accept_header(controller: Controller) -> Remedy:
    where = controller.path.service.settings_from or "its ConfigMap"
    return Remedy(f"turn the header on at the controller; ingress-nginx: in {where}", ('use-proxy-protocol: "true"',))


def _finding(
    controller: Controller, ident: str, severity: Severity, text: str, steps: tuple[Remedy, ...] = ()
) -> Finding:
    return Finding(ident, severity, text, controller.about, _evidence(controller), steps, controller.path.hostnames)


def _of_header(
    controller: Controller, ident: str, severity: Severity, text: str, steps: tuple[Remedy, ...] = ()
) -> Finding:
    evidence = (
        *_header_evidence(controller),
        f"the load balancer of {controller.provider.name} {controller.sends.value}",
    )
    return Finding(ident, severity, text, controller.about, evidence, steps, controller.path.hostnames)
