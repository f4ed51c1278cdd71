"""Steps of the scene: a forge, whose one hostname and address serve web pages through the ingress, and Git over SSH.

The law: as in scenes.py. The Service of SSH shares the address with the ingress controller's; its port takes no header.
"""

from __future__ import annotations

import time
from typing import Final

from tests.cluster.acting import manifest, seen_by_nginx
from tests.cluster.stage import Stage, StepFailed
from tests.cluster.steps.steering import decisions

HOST: Final = "git.example.org"
URL: Final = f"ssh://git@{HOST}/home/git/project.git"
DEVELOPER: Final = "developer"
"""The pod with git and an SSH key."""
SPACE: Final = "git"
EVIDENCE: Final = f"port 22 is that of {SPACE}/ssh at the same address"


def git_works_and_its_page_does_not(stage: Stage) -> None:
    """Before: by the forge's public name pods clone and push over SSH, and get no page over HTTPS."""
    stage.kubectl("apply", "-f", "-", given=manifest(stage, "git.yaml"))
    stage.rolled_out("deployment/sshd", namespace=SPACE)
    stage.patch_status("service", "ssh", "-n", SPACE, entries=stage.public(ipMode="VIP"))
    stage.patch_status("ingress", "web", "-n", SPACE, entries=stage.public())
    stage.kubectl("wait", f"pod/{DEVELOPER}", "--for=condition=Ready", "--timeout=120s")
    authorize(stage)
    stage.eventually("Git over SSH", lambda: git(stage, "ls-remote", URL)[0] == 0, seconds=30)
    expect_git(stage)
    status, said = stage.curl(f"https://{HOST}/")
    stage.say(f"curl https://{HOST}/: {said}")
    if status == 0:
        raise StepFailed("the page answered: there is no fault to fix")


def git_and_its_page_work(stage: Stage) -> None:
    """After: by the same name pods clone and push over SSH, and get the page with their own address in nginx's log.

    The relay's Service has port 22 as long as the Service of SSH has the controller's address.
    """
    relay = stage.relay_address()
    stage.eventually("the relay's address", lambda: stage.dig(HOST) == [relay], seconds=60)
    stage.expect("the evidence", saw=EVIDENCE in "\n".join(decisions(stage)["nginx"]["evidence"]), wanted=True)
    page = stage.curl(f"https://{HOST}/")
    stage.expect("the page", saw=page, wanted=(0, f"hello from {HOST}"))
    line = seen_by_nginx(stage, f'"{HOST}" 200 https')
    stage.expect("the client that nginx saw", saw=line.split()[0], wanted=stage.client_address())
    stage.say(f"nginx: {line}")
    expect_git(stage)
    stage.kubectl("delete", f"namespace/{SPACE}", "--wait")
    stage.kubectl("delete", f"pod/{DEVELOPER}", "--wait")
    lasted = stage.eventually("no port 22", lambda: relayed(stage) == [80, 443], seconds=30)
    stage.say(f"the relay's port 22 is gone {lasted:.1f} s after its Service")


def relayed(stage: Stage) -> list[int]:
    """The ports of the relay's Service."""
    return [one["port"] for one in stage.relay()["spec"]["ports"]]


def expect_git(stage: Stage) -> None:
    """A clone, a commit, a push, and a second clone that has the commit."""
    mark = f"{time.monotonic_ns()}"
    begun = time.monotonic()
    for folder in ("first", "second"):
        expect_done(stage, "clone", "--quiet", URL, f"/tmp/{folder}-{mark}")  # noqa: S108  # in a pod
        if folder == "first":
            expect_done(stage, "-C", f"/tmp/first-{mark}", "commit", "--quiet", "--allow-empty", "-m", mark)  # noqa: S108
            expect_done(stage, "-C", f"/tmp/first-{mark}", "push", "--quiet", "origin", "HEAD:main")  # noqa: S108
    _, said = git(stage, "-C", f"/tmp/second-{mark}", "log", "-1", "--format=%s")  # noqa: S108
    stage.expect("the commit in the second clone", saw=said, wanted=mark)
    stage.say(f"git clone, push and clone of {URL}: {time.monotonic() - begun:.1f} s")


def expect_done(stage: Stage, *words: str) -> None:
    status, said = git(stage, *words)
    if status != 0:
        raise StepFailed(f"git {' '.join(words)}: {said}")


def git(stage: Stage, *words: str) -> tuple[int, str]:
    """Run git in the developer's pod."""
    return stage.client("git", *words, pod=DEVELOPER)


def authorize(stage: Stage) -> None:
    """Let the key of the developer's pod in."""
    _, key = stage.client("cat", "/root/.ssh/id_ed25519.pub", pod=DEVELOPER)
    command = f"echo '{key}' > /home/git/.ssh/authorized_keys && chown -R git: /home/git/.ssh"
    stage.kubectl("exec", "deployment/sshd", "-n", SPACE, "--", "sh", "-c", command)
