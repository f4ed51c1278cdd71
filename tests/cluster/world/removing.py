"""The removal of Switchback beside controllers: what they demand and take is as before.

The law: as in scenes.py.
"""

from __future__ import annotations

import os
import subprocess

from tests.cluster.stage import Stage
from tests.cluster.world.contour import CONTOUR
from tests.cluster.world.envoy_gateway import GATEWAY
from tests.cluster.world.serving import expect_refused, expect_served, expect_visitors, until_public
from tests.cluster.world.skipper import SKIPPER
from tests.cluster.world.traefik import TRAEFIK
from tests.deploy.manifests import DEPLOY, INSTALLATION
from tests.kit.programs import program


def removal_leaves_controllers_alone(stage: Stage) -> None:
    """`deploy/remove.sh`: pods are refused where the header is demanded, served by the others, and visitors by all."""
    environment = {**os.environ, "KUBECTL": f"{program('kubectl')} --kubeconfig={stage.node.folder}/kubeconfig"}
    command = stage.node.inside(str(DEPLOY / "remove.sh"), str(INSTALLATION))
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    stage.say((done.stdout + done.stderr).strip())
    stage.expect("remove.sh", saw=done.returncode, wanted=0)
    stage.expect("the Corefile", saw=stage.corefile(), wanted=stage.before["corefile"])
    for one in (CONTOUR, GATEWAY, TRAEFIK, SKIPPER):
        until_public(stage, one)
        expect_visitors(stage, one)
    expect_refused(stage, GATEWAY)
    for one in (CONTOUR, TRAEFIK, SKIPPER):
        expect_served(stage, one)
