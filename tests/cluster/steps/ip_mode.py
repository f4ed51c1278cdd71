"""Steps of the scene: the admission policy of `dnsproxy ip-mode`, with a load balancer outside of the node.

The law: as in steps.py. The pods here dial the balancer's own address, which dnsproxy replaces in DNS for every host.
"""

from __future__ import annotations

import json
import sys
from typing import Final

from tests.cluster.acting import seen_by_nginx
from tests.cluster.stage import Stage, StepFailed
from tests.cluster.steps.balancer import (
    CONTROLLER,
    PASSED,
    SPACE,
    expect_visitors,
    mode_of,
    start_balancer,
    stop_balancer,
    visit,
    write_status,
)
from tests.cluster.steps.kube_proxy import (
    expect_rules,
    mode_at_start,
    other_mode,
    restart_in,
    rules_at_rest,
    rules_of,
)
from tests.cluster.steps.trial import trial_shows_it
from tests.deploy.manifests import DEPLOY

ANNOTATION: Final = "switchback.dev/ip-mode"
COMPONENT: Final = DEPLOY / "components" / "ip-mode"


def pods_reach_the_balancer(stage: Stage) -> None:
    """A trial, and the component ip-mode, on nftables or Cilium: pods get the page after the next status write."""
    mode = mode_at_start(stage)
    start_balancer(stage)
    wait_for_visitors(stage)
    expect_fault(stage, "before.example.org")
    rules = rules_at_rest(stage, mode)
    trial_shows_it(stage)
    expect_untouched(stage, mode, rules)
    expect_fault(stage, "tried.example.org")
    install_policy(stage)
    stage.expect("the mode until the provider writes", saw=mode_of(stage, CONTROLLER), wanted="VIP")
    expect_fault(stage, "installed.example.org")

    write_statuses(stage, "Proxy")
    expect_cure(stage, mode, "cured.example.org", before=rules)
    expect_bystanders(stage, "bystanders")

    remove_policy(stage)
    stage.expect("the mode after the removal", saw=mode_of(stage, CONTROLLER), wanted="Proxy")
    expect_cure(stage, mode, "removed.example.org", before=rules)
    write_statuses(stage, "VIP")
    expect_rules(stage, mode, rules)
    expect_fault(stage, "after.example.org")


def commands_do_the_same(stage: Stage) -> None:
    """`dnsproxy ip-mode --apply` and `--remove`, kube-proxy in its other mode: pods get the page at once."""
    mode = other_mode(stage)
    restart_in(stage, mode)
    wait_for_visitors(stage)
    expect_fault(stage, "iptables.example.org")
    rules = rules_at_rest(stage, mode)
    # Only the user can know that this balancer ends the connections.
    command(stage, "--apply", "--rewrite", wanted=1)
    stage.expect(
        "the mode after a refusal", saw=(mode_of(stage, CONTROLLER), would_write(stage)), wanted=("VIP", "VIP")
    )

    command(stage, "--apply", "--rewrite", "--balancer-ends-connections")
    stage.expect("the mode that is written", saw=mode_of(stage, CONTROLLER), wanted="Proxy")
    expect_cure(stage, mode, "applied.example.org", before=rules)
    write_statuses(stage, "Proxy")
    expect_cure(stage, mode, "written.example.org", before=rules)
    expect_bystanders(stage, "iptables-bystanders")

    command(stage, "--remove", "--rewrite")
    stage.expect("the mode that is written", saw=mode_of(stage, CONTROLLER), wanted="VIP")
    expect_rules(stage, mode, rules)
    expect_fault(stage, "without.example.org")
    restart_in(stage, mode_at_start(stage))


def passed_traffic_is_lost(stage: Stage) -> None:
    """Proxy for a balancer that passes packets through: visitors get no page, and with VIP they do again."""
    install_policy(stage)
    stage.expect("a visitor", saw=visit(stage, "before.example.org", stage.at.passed), wanted=passed("before"))
    annotate(stage, PASSED, "Proxy")
    write_status(stage, PASSED)
    stage.expect("the mode that the provider wrote", saw=mode_of(stage, PASSED), wanted="Proxy")
    stage.eventually("no page", lambda: not visit(stage, "lost.example.org", stage.at.passed), seconds=30)
    stage.say(f"Proxy: no page for visitors of {stage.at.passed}")
    remove_policy(stage)
    write_status(stage, PASSED)
    stage.eventually("a page", lambda: visit(stage, "back.example.org", stage.at.passed), seconds=30)
    stage.say("VIP: a page again")
    stop_balancer(stage)


def passed(name: str) -> str:
    return f"plain hello from {name}.example.org"


def install_policy(stage: Stage) -> None:
    """The policy in effect for the controller's Service."""
    stage.say(stage.kubectl("apply", "-k", str(COMPONENT)))
    annotate(stage, CONTROLLER, "Proxy")
    lasted = stage.eventually("a policy in effect", lambda: would_write(stage) == "Proxy", seconds=60)
    stage.say(f"the policy is in effect after {lasted:.1f} s")


def remove_policy(stage: Stage) -> None:
    """Without it a provider's VIP stays."""
    stage.say(stage.kubectl("delete", "-k", str(COMPONENT)))
    stage.eventually("no policy in effect", lambda: would_write(stage) == "VIP", seconds=60)
    annotate(stage, CONTROLLER, None)


def would_write(stage: Stage) -> str:
    """The mode that the API server would write now for the provider's VIP; nothing is written."""
    status = {"status": {"loadBalancer": {"ingress": [{"ip": stage.at.public, "ipMode": "VIP"}]}}}
    words = ["--subresource=status", "--type=merge", "-p", json.dumps(status), "--dry-run=server", "-o", "json"]
    shown = json.loads(stage.kubectl("patch", "service", CONTROLLER, "-n", SPACE, *words))
    return str(shown["status"]["loadBalancer"]["ingress"][0]["ipMode"])


def annotate(stage: Stage, service: str, value: str | None) -> None:
    change = f"{ANNOTATION}-" if value is None else f"{ANNOTATION}={value}"
    stage.kubectl("annotate", "service", service, "-n", SPACE, "--overwrite", change)


def write_statuses(stage: Stage, wanted: str) -> None:
    """The provider's next writes, and the mode that they have for the selected Service; another's stays VIP."""
    for service, mode in ((CONTROLLER, wanted), (PASSED, "VIP")):
        write_status(stage, service)
        stage.expect(f"the mode that the provider wrote for {service}", saw=mode_of(stage, service), wanted=mode)


def command(stage: Stage, *flags: str, wanted: int = 0) -> None:
    """Run `dnsproxy ip-mode` for the controller's Service on the node."""
    words = [f"--kubeconfig={stage.node.folder}/kubeconfig", f"--service={SPACE}/{CONTROLLER}", *flags]
    done = stage.node.run(sys.executable, "-m", "dnsproxy", "ip-mode", *words, check=False)
    stage.say(f"dnsproxy ip-mode {' '.join(flags)}:\n{done.stdout}{done.stderr}")
    stage.expect("the exit status", saw=done.returncode, wanted=wanted)


def wait_for_visitors(stage: Stage) -> None:
    """Until kube-proxy and the balancer serve both addresses."""
    for address in (stage.at.public, stage.at.passed):
        stage.eventually(f"a page at {address}", lambda at=address: visit(stage, "any.example.org", at), seconds=30)  # type: ignore[misc]


def expect_fault(stage: Stage, host: str) -> None:
    """Pods are short-circuited; visitors are served."""
    status, said = dial(stage, "http", host)
    if status == 0:
        raise StepFailed(f"{host} answered the pod: {said}")
    stage.say(f"a pod's curl of {host}: {said.splitlines()[0]}")
    expect_visitors(stage, f"visitor-{host}")


def dial(stage: Stage, scheme: str, host: str) -> tuple[int, str]:
    """A page for a pod, from the balancer's address."""
    resolved = f"{host}:{443 if scheme == 'https' else 80}:{stage.at.in_url(stage.at.public)}"
    return stage.curl(f"{scheme}://{host}/", "--resolve", resolved)


def expect_cure(stage: Stage, mode: str, host: str, *, before: frozenset[str]) -> None:
    """There is no rule for the address; pods and visitors get the page with the address that the header has."""
    stage.eventually("no rule", lambda: stage.at.public not in str(rules_of(stage, mode)), seconds=30)
    changed = rules_of(stage, mode) ^ before
    own = [at.public for at in stage.cluster.at]
    others = [one for one in changed if not any(address in one for address in own)]
    stage.expect("other changed rules", saw=others, wanted=[])
    for scheme in ("http", "https"):
        stage.expect(f"{scheme} page", saw=dial(stage, scheme, host), wanted=(0, f"hello from {host}"))
        line = seen_by_nginx(stage, f'"{host}" 200 {scheme}')
        stage.say(f"{scheme} from a pod; nginx: {line}")
        # Some CNIs leave masquerading to another program.
        stage.expect("masqueraded", saw=line.split()[0] in {*stage.edges, stage.client_address()}, wanted=True)
    expect_visitors(stage, f"visitor-{host}")
    stage.expect("the visitor", saw=seen_by_nginx(stage, f'"visitor-{host}"').split()[0], wanted=stage.at.visitor)
    stage.say(f"{len(changed)} rules in the kernel differ, all of {stage.at.public}")


def expect_untouched(stage: Stage, mode: str, before: frozenset[str]) -> None:
    """The mode is VIP, and the rules are soon as before."""
    stage.expect("the mode after the trial", saw=mode_of(stage, CONTROLLER), wanted="VIP")
    expect_rules(stage, mode, before)


def expect_bystanders(stage: Stage, name: str) -> None:
    """Others notice nothing: a Service that is not selected, the cluster's DNS, the API server, a claimed host."""
    host = f"{name}.example.org"
    resolved = (
        "curl",
        "-sS",
        "--max-time",
        "8",
        "--resolve",
        f"{host}:80:{stage.at.in_url(stage.at.passed)}",
        f"http://{host}/",
    )
    stage.expect("the other Service's page", saw=stage.client(*resolved), wanted=(0, passed(name)))
    stage.expect("a visitor's page", saw=visit(stage, host, stage.at.passed), wanted=passed(name))
    stage.expect("the cluster's DNS", saw=stage.dig("kube-dns.kube-system.svc.cluster.local"), wanted=[stage.at.dns])
    api = ("curl", "-sSk", "--max-time", "8", "https://kubernetes.default.svc.cluster.local/readyz")
    stage.expect("the API server", saw=stage.client(*api), wanted=(0, "ok"))
    stage.expect("a claimed host", saw=stage.curl("http://app.example.org/"), wanted=(0, "hello from app.example.org"))
    line = seen_by_nginx(stage, '"app.example.org" 200 http')
    # With `ipMode: Proxy` the class is let go, and pods reach the balancer.
    stage.expect("the client", saw=line.split()[0] in {*stage.edges, stage.client_address()}, wanted=True)
