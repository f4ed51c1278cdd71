"""Steps of the scene: what `dnsproxy operate` decides, and what pods notice when a cluster changes.

The law: as in steps.py. A request fails only where it would fail without us.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tests.cluster.acting import under_load
from tests.cluster.stage import Stage
from tests.cluster.steps.balancer import CONTROLLER, SPACE

HOST: Final = "app.example.org"
URL: Final = f"http://{HOST}/"
SECOND: Final = "second"
"""The name of the second class, and of its controller's namespace."""
SECOND_HOST: Final = "second.example.net"
LONGEST: Final = 90.0
"""Seconds until a class is steered again: its ports are probed once a minute, and each of three handshakes has 5 s."""
_STATUS: Final = ("exec", "deployment/operate", "-n", "switchback", "--", "dnsproxy", "status", "--output=json")


def decisions(stage: Stage) -> dict[str, Any]:
    """The row of each class as `dnsproxy status` has it, by name."""
    # Its exit status tells of the stanza too, which other steps judge.
    told = json.loads(stage.node.kubectl(*_STATUS, check=False).stdout)
    return {one["subject"].removeprefix("ingressclass/"): one for one in told["steering"]["subjects"]}


def is_steered(stage: Stage, name: str = "nginx") -> bool:
    return name in (found := decisions(stage)) and bool(found[name]["steered"])


def until_steered(stage: Stage, name: str = "nginx") -> None:
    """Wait, and report the decision with its evidence."""
    lasted = stage.eventually(f"the class {name} is steered", lambda: is_steered(stage, name), seconds=LONGEST)
    row = decisions(stage)[name]
    stage.say(f"{name} is steered after {lasted:.1f} s: {row['decision']} for {row['backend']}")
    stage.say("\n".join(f"  {line}" for line in row["evidence"]))


def until_page(stage: Stage, url: str = URL) -> None:
    """Wait until the client's pod has the page, and report the seconds."""
    lasted = stage.eventually(f"a page of {url}", lambda: stage.curl(url)[0] == 0, seconds=LONGEST)
    stage.say(f"pods have {url} {lasted:.1f} s later")


def decision_has_evidence(stage: Stage) -> None:
    """`dnsproxy status` has the decision for nginx with its evidence, and an Event tells of it."""
    until_steered(stage)
    wanted = ("port 80 demands the PROXY header", "port 443 demands the PROXY header", "a handshake through the relay")
    told = "\n".join(decisions(stage)["nginx"]["evidence"])
    stage.expect("the evidence", saw=[one for one in wanted if one not in told], wanted=[])
    stage.eventually("an Event about the class", lambda: "Steered" in reasons(stage, "nginx"), seconds=30)


def plain_controller_is_let_go(stage: Stage) -> None:
    """A graceful rollout turns the header off: no request fails, and the names are forwarded again."""
    said = under_load(stage, "http", URL, act=lambda: turn(stage, "changed.conf", then=lambda: until_let_go(stage)))
    stage.expect("results of requests", saw=set(said), wanted={"ok"})


def demanding_controller_is_steered(stage: Stage) -> None:
    """A rollout turns the header on: pods have the pages again without help; another class is as before."""
    said = under_load(
        stage, "http", "http://plain.example.org/", act=lambda: turn(stage, "demanding.conf", then=lambda: back(stage))
    )
    stage.expect("results of requests to the other class", saw=set(said), wanted={"ok"})


def second_controller_comes_and_goes(stage: Stage) -> None:
    """A second controller with its own class and address is steered; its arrival and end cost the first one nothing."""

    def act() -> None:
        for one in second_controller():
            stage.apply(one)
        stage.rolled_out("deployment/controller", namespace=SECOND)
        stage.patch_status("service", "balanced", "-n", SECOND, entries=[{"ip": stage.at.second}])
        stage.ingress(SECOND, SECOND_HOST, ingress_class=SECOND)
        stage.ingress_status(SECOND, {"ip": stage.at.second})
        until_steered(stage, SECOND)
        until_page(stage, f"http://{SECOND_HOST}/")
        status, said = stage.curl(f"http://{SECOND_HOST}/")
        stage.expect("the page", saw=(status, said), wanted=(0, f"hello from {SECOND_HOST}"))
        stage.kubectl("delete", "ingress", SECOND)
        stage.kubectl("delete", f"ingressclass/{SECOND}", f"namespace/{SECOND}", "--wait")
        stage.eventually("no row of its class", lambda: SECOND not in decisions(stage), seconds=60)

    said = under_load(stage, "http", URL, act=act)
    stage.expect("results of requests to the first class", saw=set(said), wanted={"ok"})


def hostname_is_let_go(stage: Stage) -> None:
    """The Service's status becomes a hostname: no request fails, and pods reach the load balancer; then back."""
    until_steered(stage)
    until_page(stage)

    def act() -> None:
        stage.patch_status("service", CONTROLLER, "-n", SPACE, entries=[{"hostname": HOST}])
        until_let_go(stage)

    said = under_load(stage, "http", URL, act=act)
    stage.expect("results of requests", saw=set(said), wanted={"ok"})
    stage.patch_status("service", CONTROLLER, "-n", SPACE, entries=stage.public(ipMode="VIP"))
    back(stage)


def until_let_go(stage: Stage) -> None:
    """Wait until the cluster's DNS answers the public address everywhere, and a while longer."""
    lasted = stage.eventually("nginx is let go", lambda: not is_steered(stage), seconds=LONGEST)
    stage.say(f"nginx is let go after {lasted:.1f} s: {decisions(stage)['nginx']['evidence'][-1]}")
    answered = stage.everywhere(HOST, stage.at.public)
    stage.say(f"and every CoreDNS answers the public address {answered:.1f} s later")
    # The load goes on at the public address.
    time.sleep(3)


def back(stage: Stage) -> None:
    """Wait until the class is steered, and pods have its page, whichever CoreDNS they ask."""
    until_steered(stage)
    lasted = stage.everywhere(HOST, stage.relay_address())
    stage.say(f"every CoreDNS has the relay's address {lasted:.1f} s later")
    until_page(stage)


def turn(stage: Stage, key: str, *, then: Callable[[], None]) -> None:
    """Roll the controller out with another key of its ConfigMap, as `helm upgrade` does."""
    change = {"op": "replace", "path": "/spec/template/spec/volumes/1/configMap/items/1/key", "value": key}
    stage.kubectl("patch", "deployment", "controller", "-n", SPACE, "--type=json", "-p", json.dumps([change]))
    stage.rolled_out("deployment/controller", namespace=SPACE)
    stage.say(f"the controller has {key}")
    then()


def reasons(stage: Stage, ingress_class: str) -> set[str]:
    """Of the Events about an IngressClass."""
    found = stage.get("events.v1.events.k8s.io", "-n", "default")["items"]
    return {one["reason"] for one in found if one["regarding"]["name"] == ingress_class}


def second_controller() -> Sequence[Mapping[str, Any]]:
    """A controller that demands the header in version 1 on port 80, in a namespace of its own."""
    labels = {"app": "controller"}
    listen = "  listen 80 proxy_protocol;\n  listen [::]:80 proxy_protocol;\n"
    server = f'server {{\n{listen}  location / {{ return 200 "hello from $host\\n"; }}\n}}\n'
    container = {
        "name": "nginx",
        "image": "localhost/tools:1",
        "imagePullPolicy": "Never",
        "command": ["nginx", "-g", "daemon off;"],
        "volumeMounts": [
            {"name": "nginx", "mountPath": "/etc/nginx/conf.d"},
            {"name": "none", "mountPath": "/etc/nginx/sites-enabled"},
        ],
    }
    volumes = [{"name": "nginx", "configMap": {"name": "nginx"}}, {"name": "none", "emptyDir": {}}]
    return (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SECOND}},
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "IngressClass",
            "metadata": {"name": SECOND},
            "spec": {"controller": "example.org/second"},
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "nginx", "namespace": SECOND},
            "data": {"server.conf": server},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "controller", "namespace": SECOND},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [container], "volumes": volumes},
                },
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "balanced", "namespace": SECOND},
            "spec": {"type": "LoadBalancer", "selector": labels, "ports": [{"name": "http", "port": 80}]},
        },
    )
