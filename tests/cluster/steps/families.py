"""The steps of the scene about each family of addresses, not only the cluster's primary one.

The law: as in scenes.py. A family that fails while the other works costs some clients seconds, and others the page.
"""

from __future__ import annotations

from tests.cluster.acting import seen_by_nginx
from tests.cluster.addresses import Addresses
from tests.cluster.stage import Stage, StepFailed

HOST = "app.example.org"


def no_family_is_served(stage: Stage) -> None:
    """Before, with two families: the pod gets the page in neither."""
    for at in stage.cluster.at:
        stage.expect("the public address", saw=stage.dig(HOST, record=at.record), wanted=[at.public])
        for scheme in ("http", "https"):
            status, said = stage.curl(f"{scheme}://{HOST}/", f"-{at.family}")
            stage.say(f"{scheme} at {at.public}: {said}")
            if status == 0:
                raise StepFailed(f"{at.public} answered: there is no fault to fix")


def every_family_is_served(stage: Stage) -> None:
    """After, with two families: the relay's address in each, and nginx sees the pod's own address of that family."""
    for at in stage.cluster.at:
        relay = address_in(at, stage.relay()["spec"]["clusterIPs"])
        pod = address_in(at, [one["ip"] for one in stage.get("pod", "client")["status"]["podIPs"]])
        stage.everywhere(HOST, relay, record=at.record)
        for scheme in ("http", "https"):
            path = f"/{at.record}"
            status, said = stage.curl(f"{scheme}://{HOST}{path}", f"-{at.family}")
            stage.expect(f"the page at {relay}", saw=(status, said), wanted=(0, f"hello from {HOST}"))
            line = seen_by_nginx(stage, f'"{HOST}" 200 {scheme} {path}')
            stage.say(f"{at.record} {relay}: nginx: {line}")
            stage.expect("the client that nginx saw", saw=line.split()[0], wanted=pod)


def address_in(at: Addresses, addresses: list[str]) -> str:
    """The address of one family among those of a Service or a pod."""
    (found,) = (one for one in addresses if (":" in one) == (at.family == 6))  # the family
    return found
