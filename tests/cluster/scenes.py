"""The scenes: which steps are played on which stage, and in which order.

The law: the order is the story; a step is left out only where its stage cannot show it. See steps/ and world/ for what
each one proves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tests.cluster.plan import CILIUM_ALONE, CONTROLLERS, METALLB, UPGRADES, WHOLE, Plan
from tests.cluster.stage import Stage
from tests.cluster.steps.diagnosing import doctor_names_the_fault, doctor_sees_the_cure
from tests.cluster.steps.families import every_family_is_served, no_family_is_served
from tests.cluster.steps.git_ssh import git_and_its_page_work, git_works_and_its_page_does_not
from tests.cluster.steps.installing import (
    apply_installs,
    cluster_is_there,
    cure_works,
    fault_is_there,
    new_ingress_is_quick,
    readme_installs,
    readme_is_tested,
    removal_leaves_nothing,
    second_class_goes_straight,
)
from tests.cluster.steps.ip_mode import commands_do_the_same, passed_traffic_is_lost, pods_reach_the_balancer
from tests.cluster.steps.life import (
    down_relay_costs_nothing,
    every_node_has_one,
    no_lookup_is_lost,
    no_request_is_lost,
    outage_is_survived,
    rendered_anew_is_repaired,
)
from tests.cluster.steps.publishing import node_has_the_names
from tests.cluster.steps.refusing import strangers_are_refused
from tests.cluster.steps.registry import (
    cure_of_pods_is_none_of_nodes,
    every_node_pulls,
    node_is_cut_off,
    nodes_are_cut_off_again,
)
from tests.cluster.steps.steering import (
    decision_has_evidence,
    demanding_controller_is_steered,
    hostname_is_let_go,
    plain_controller_is_let_go,
    second_controller_comes_and_goes,
)
from tests.cluster.steps.transferring import (
    change_reaches_each_node,
    lost_primaries_change_nothing,
    other_primary_takes_over,
)
from tests.cluster.steps.two_nodes import (
    drain_costs_nothing,
    every_way_leads_to_the_page,
    local_policy_of_a_target_loses_nobody,
    node_dies,
)
from tests.cluster.steps.upgrading import (
    chart_goes_back_and_forth,
    chart_is_tested_and_removed,
    chart_takes_over,
    kustomization_takes_over,
    previous_version_is_there,
    upgrade_by_kubectl_costs_nothing,
)
from tests.cluster.steps.whole_ip import address_is_the_pods, rules_outlive_agents
from tests.cluster.world import metallb
from tests.cluster.world.acme import (
    certificate_is_issued,
    certificate_is_renewed,
    issuance_fails,
    new_ingress_gets_one,
)
from tests.cluster.world.contour import (
    contour_is_cured,
    contour_is_there,
    contour_is_upgraded,
    contour_refuses_the_header,
)
from tests.cluster.world.envoy_gateway import (
    gateway_demands_it_again,
    gateway_is_cured,
    gateway_is_there,
    gateway_is_upgraded,
    gateway_refuses_the_header,
    gateway_takes_both,
)
from tests.cluster.world.images import programs_of
from tests.cluster.world.metallb_cures import address_changes, removal_leaves_metallb_alone, speaker_dies
from tests.cluster.world.metallb_steps import (
    address_of_a_balancer_outside_has_the_fault,
    ip_mode_harms_there,
    metallb_gives_addresses,
    metallb_runs,
    policy_of_ip_mode_takes_it_away,
    proxy_with_its_own_address_is_no_fault,
    router_on_the_way_has_the_fault,
)
from tests.cluster.world.removing import removal_leaves_controllers_alone
from tests.cluster.world.skipper import (
    skipper_is_left_alone,
    skipper_is_upgraded,
    skipper_takes_both,
    skipper_takes_no_header,
)
from tests.cluster.world.traefik import (
    traefik_is_left_alone,
    traefik_is_upgraded,
    traefik_refuses_the_header,
    traefik_takes_both,
)

STEPS: Final[Sequence[Callable[[Stage], None]]] = (
    cluster_is_there,
    fault_is_there,
    no_family_is_served,
    doctor_names_the_fault,
    node_is_cut_off,
    git_works_and_its_page_does_not,
    contour_is_there,
    issuance_fails,
    readme_installs,
    certificate_is_issued,
    contour_is_cured,
    certificate_is_renewed,
    new_ingress_gets_one,
    decision_has_evidence,
    cure_works,
    every_family_is_served,
    cure_of_pods_is_none_of_nodes,
    git_and_its_page_work,
    doctor_sees_the_cure,
    readme_is_tested,
    new_ingress_is_quick,
    second_class_goes_straight,
    local_policy_of_a_target_loses_nobody,
    strangers_are_refused,
    every_way_leads_to_the_page,
    no_lookup_is_lost,
    no_request_is_lost,
    contour_is_upgraded,
    drain_costs_nothing,
    node_dies,
    down_relay_costs_nothing,
    plain_controller_is_let_go,
    demanding_controller_is_steered,
    second_controller_comes_and_goes,
    outage_is_survived,
    rendered_anew_is_repaired,
    node_has_the_names,
    every_node_pulls,
    every_node_has_one,
    change_reaches_each_node,
    lost_primaries_change_nothing,
    other_primary_takes_over,
    pods_reach_the_balancer,
    hostname_is_let_go,
    commands_do_the_same,
    passed_traffic_is_lost,
    address_is_the_pods,
    rules_outlive_agents,
    removal_leaves_nothing,
    nodes_are_cut_off_again,
)
WITHOUT_KUBE_PROXY: Final[Sequence[Callable[[Stage], None]]] = (
    cluster_is_there,
    fault_is_there,
    apply_installs,
    decision_has_evidence,
    cure_works,
    pods_reach_the_balancer,
    passed_traffic_is_lost,
)
"""The steps on a node where Cilium carries connections to Services."""
WITH_METALLB: Final[Sequence[Callable[[Stage], None]]] = (
    metallb_runs,
    cluster_is_there,
    metallb_gives_addresses,
    proxy_with_its_own_address_is_no_fault,
    address_of_a_balancer_outside_has_the_fault,
    policy_of_ip_mode_takes_it_away,
    router_on_the_way_has_the_fault,
    ip_mode_harms_there,
    fault_is_there,
    apply_installs,
    decision_has_evidence,
    cure_works,
    doctor_sees_the_cure,
    speaker_dies,
    address_changes,
    removal_leaves_metallb_alone,
)
"""The steps with MetalLB, which gives the addresses."""
WITH_CONTROLLERS: Final[Sequence[Callable[[Stage], None]]] = (
    cluster_is_there,
    contour_is_there,
    gateway_is_there,
    traefik_takes_both,
    skipper_takes_both,
    apply_installs,
    contour_is_cured,
    gateway_is_cured,
    traefik_is_left_alone,
    skipper_is_left_alone,
    contour_is_upgraded,
    gateway_is_upgraded,
    traefik_is_upgraded,
    skipper_is_upgraded,
    gateway_takes_both,
    gateway_refuses_the_header,
    gateway_demands_it_again,
    traefik_refuses_the_header,
    skipper_takes_no_header,
    contour_refuses_the_header,
    removal_leaves_controllers_alone,
)
"""The steps with every controller of the world: demanding, taking both, and refusing."""
FROM_THE_PREVIOUS_VERSION: Final[Sequence[Callable[[Stage], None]]] = (
    cluster_is_there,
    fault_is_there,
    previous_version_is_there,
    upgrade_by_kubectl_costs_nothing,
    chart_takes_over,
    chart_goes_back_and_forth,
    kustomization_takes_over,
    chart_is_tested_and_removed,
)
"""The steps from the version before this one to this one and back, and from kustomize to the chart and back."""
SCENES: Final[Mapping[str, Sequence[Callable[[Stage], None]]]] = {
    WHOLE: STEPS,
    METALLB: WITH_METALLB,
    CONTROLLERS: WITH_CONTROLLERS,
    UPGRADES: FROM_THE_PREVIOUS_VERSION,
}
_OF_TWO_FAMILIES: Final = frozenset({no_family_is_served, every_family_is_served})
_OF_TWO_NODES: Final = frozenset({every_way_leads_to_the_page, contour_is_upgraded, drain_costs_nothing, node_dies})
"""One node cannot upgrade Contour under load: its one pod of Envoy restarts, and no other pod serves meanwhile."""
_OF_WORLD: Final = frozenset(
    {
        *(contour_is_there, contour_is_cured, contour_is_upgraded),
        *(issuance_fails, certificate_is_issued, certificate_is_renewed, new_ingress_gets_one),
    }
)
"""The steps with programs of `scripts/peers.sh --world`."""
_OF_POLICIES: Final = frozenset(
    {pods_reach_the_balancer, hostname_is_let_go, commands_do_the_same, passed_traffic_is_lost}
)
"""The steps in which an admission policy changes what a provider writes, and those that need its load balancer."""


def steps_of(plan: Plan) -> list[Callable[[Stage], None]]:
    """The steps that a combination can show."""
    if plan.scene != WHOLE:
        return list(SCENES[plan.scene])
    if plan.cni == CILIUM_ALONE:
        return list(WITHOUT_KUBE_PROXY)
    shown = {
        _OF_POLICIES: plan.has_mutating_policies,
        _OF_TWO_NODES: plan.nodes > 1,
        _OF_TWO_FAMILIES: len(plan.families) > 1,
        _OF_WORLD: plan.world,
    }
    left_out = {step for steps, can_be_shown in shown.items() if not can_be_shown for step in steps}
    return [step for step in STEPS if step not in left_out]


def needed_by(plan: Plan) -> Sequence[str]:
    """The peers of the world that its steps need."""
    if plan.scene == METALLB:
        return metallb.PROGRAMS
    if plan.scene == UPGRADES:
        return ("helm", "git")
    return ("helm", *programs_of(plan)) if plan.scene == WHOLE else programs_of(plan)
