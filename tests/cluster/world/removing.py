"""The removal of Switchback beside controllers: what they demand and take is as before.

The law: as in scenes.py.
"""

from __future__ import annotations

from tests.cluster.acting import remove
from tests.cluster.stage import Stage
from tests.cluster.world.contour import CONTOUR
from tests.cluster.world.envoy_gateway import GATEWAY
from tests.cluster.world.serving import expect_refused, expect_served, expect_visitors
from tests.cluster.world.skipper import SKIPPER
from tests.cluster.world.traefik import TRAEFIK
from tests.deploy.manifests import INSTALLATION


def removal_leaves_controllers_alone(stage: Stage) -> None:
    """`deploy/remove.sh`: pods are refused where the header is demanded, served by the others, and visitors by all."""
    remove(stage, INSTALLATION)
    for one in (CONTOUR, GATEWAY, TRAEFIK, SKIPPER):
        stage.everywhere(one.pages, stage.at.of(one.name))
        expect_visitors(stage, one)
    expect_refused(stage, GATEWAY)
    for one in (CONTOUR, TRAEFIK, SKIPPER):
        expect_served(stage, one)
