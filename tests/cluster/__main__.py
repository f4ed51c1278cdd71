"""`python -m tests.cluster`: build the image, start a node, run the scene. Root, Linux; `make cluster-peers` first."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.cluster import readme
from tests.cluster.nodes.cluster import missing, running_cluster
from tests.cluster.nodes.configs import MODES, NFTABLES
from tests.cluster.nodes.images import save_images
from tests.cluster.nodes.node import NodeFailed
from tests.cluster.plan import BRIDGE, CNIS, COREDNS, FAMILIES, UPGRADES, WHOLE, Plan, make_plan
from tests.cluster.previous import save_previous
from tests.cluster.scenes import SCENES, needed_by, steps_of
from tests.cluster.stage import Stage, StepFailed
from tests.cluster.world.images import images_of, save_world
from tests.deploy.image import copy_sources, forget_unnamed


def main() -> int:
    """Run all steps, or the steps up to one. Exit status: 0 success, 1 a step failed, 3 the scene could not run."""
    options = parse(sys.argv[1:])
    plan = plan_of(options)
    absent = missing(plan.cni, more=needed_by(plan))
    if os.geteuid() != 0 or absent:
        told = f"missing: {', '.join(absent)}" if absent else "root is needed"
        peers = "scripts/peers.sh --cilium" if options.cni != BRIDGE else "make cluster-peers"
        sys.stderr.write(f"{told}; `{peers}` brings what is needed\n")
        return 3
    # Ends with an exception, so that the node ends too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder = Path(tempfile.mkdtemp(prefix="switchback-cluster-"))
    begun = time.monotonic()
    try:
        return play(folder, plan, last=options.until, keep=options.keep)
    finally:
        sys.stdout.write(f"{time.monotonic() - begun:.0f} s in all\n")
        shutil.rmtree(folder, ignore_errors=True)


def parse(words: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    names = list(dict.fromkeys(step.__name__ for steps in SCENES.values() for step in steps))
    parser.add_argument("--scene", choices=SCENES, default=WHOLE, help="whose steps to play")
    parser.add_argument("--until", choices=names, help="the last step to play")
    parser.add_argument("--nodes", type=int, choices=(1, 2), default=2, help="how many machines")
    parser.add_argument("--families", choices=sorted(FAMILIES), default="ipv4", help="the addresses of the cluster")
    parser.add_argument("--mode", choices=MODES, default=NFTABLES, help="the mode of kube-proxy")
    parser.add_argument("--cni", choices=CNIS, default=BRIDGE, help="what connects the pods; Cilium has one node")
    parser.add_argument("--kubernetes", default="", metavar="VERSION", help="of the nodes; the newest by default")
    parser.add_argument("--coredns", default=COREDNS, help="its name among the peers, such as coredns-old")
    parser.add_argument("--alone", action="store_true", help="without the world's programs: Contour, cert-manager ...")
    parser.add_argument("--keep", action="store_true", help="after the last step, or the one that fell, wait for Enter")
    return parser.parse_args(words)


def plan_of(options: argparse.Namespace) -> Plan:
    """The combination to play."""
    return make_plan(
        families=options.families,
        nodes=options.nodes,
        mode=options.mode,
        cni=options.cni,
        scene=options.scene,
        world=not options.alone,
        kubernetes=options.kubernetes,
        coredns=options.coredns,
    )


def play(folder: Path, plan: Plan, *, last: str | None, keep: bool) -> int:
    """Build, start, and run the steps."""
    heading("Build the images")
    (folder / "images").mkdir()
    checkout = copy_sources(folder / "images")
    readme.build(checkout, folder / "images")
    images = save_images(folder / "images", coredns=plan.coredns, sources=checkout)
    images |= save_world(folder / "images", images_of(plan))
    if plan.scene == UPGRADES:
        images |= save_previous(folder / "images")
    forget_unnamed()
    heading(f"Start {plan.nodes} node{'s' if plan.nodes > 1 else ''}")
    with running_cluster(folder, plan) as cluster:
        for node in cluster.nodes.values():
            for archive in images.values():
                node.import_image(archive)
            readme.play_in(node, readme.IMPORT, checkout)
        stage = Stage(cluster, folder, checkout)
        try:
            return play_steps(stage, last=last)
        finally:
            if keep:
                pids = ", ".join(f"{node.name} {node.pid}" for node in stage.nodes)
                sys.stdout.write(
                    f"kept: nsenter -t PID -a ({pids}); kubeconfig {stage.node.folder}/kubeconfig; Enter ends it\n"
                )
                sys.stdin.readline()


def play_steps(stage: Stage, *, last: str | None) -> int:
    """Run the steps up to one; stop at the first that fails."""
    for number, step in enumerate(steps_of(stage.plan), 1):
        begun = time.monotonic()
        heading(f"{number}. {(step.__doc__ or '').splitlines()[0]}")
        try:
            step(stage)
        except (StepFailed, NodeFailed) as error:
            stage.say(f"FAILED after {time.monotonic() - begun:.0f} s: {error}")
            show_state(stage)
            return 1
        stage.say(f"({time.monotonic() - begun:.0f} s)")
        if step.__name__ == last:
            break
    return 0


def show_state(stage: Stage) -> None:
    """What a failed step may be explained with: pods, Events, and the last lines of our programs."""
    stage.say(stage.node.kubectl("get", "pods", "-A", check=False).stdout[-2000:])
    for namespace in ("kube-system", "switchback"):
        events = ("get", "events", "-n", namespace, "--sort-by=.metadata.creationTimestamp")
        stage.say(stage.node.kubectl(*events, check=False).stdout[-2500:])
    logs = ("logs", "-n", "switchback", "-l", "app.kubernetes.io/part-of=switchback", "--prefix", "--tail=12")
    stage.say(stage.node.kubectl(*logs, check=False).stdout[-5000:])


def heading(text: str) -> None:
    """Announce the next step."""
    sys.stdout.write(f"\n{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
