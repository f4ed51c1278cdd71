"""A guide's commands, played in their order by a real shell, with the real kubectl and Helm on a test's API server.

The law: a line of the guide is run as it is written. Only what needs a node is played: a pod's program runs as a
process with the account of that pod, and lookups in a pod are those of the caller.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from docs.fences import find_fences
from tests.deploy.calls import Caller, account
from tests.deploy.control_plane import PodsOfJobs
from tests.deploy.manifests import DEPLOY
from tests.kit.apiserver import ApiServer
from tests.kit.polling import poll_until
from tests.kit.prepared_program import play
from tests.kit.programs import program
from tests.kit.watching import Watching

_COREFILE: Final = "/api/v1/namespaces/kube-system/configmaps/coredns"
_INGRESSES: Final = "/apis/networking.k8s.io/v1/ingresses"
_PAUSE: Final = 0.2
_EDITS: Final = "-e '/# Added by hairpin-proxy$/d' -e '/=== BEGIN ouroboros/,/=== END ouroboros/d'"


def commands_of(page: str) -> list[str]:
    """The lines of a guide's first block."""
    text = (DEPLOY / "migrating" / page).read_text(encoding="utf-8")
    body = next(fence.body for fence in find_fences(text) if fence.language == "sh")
    return [line for line in body.splitlines() if line and not line.startswith("#")]


@dataclass(frozen=True)
class Shell:
    """A person's shell in a folder, with kubectl, helm and an editor that deletes the lines that the guides name."""

    folder: Path
    kubeconfig: Path

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        programs = self.folder / "programs"
        programs.mkdir(exist_ok=True)
        for name in ("kubectl", "helm"):
            if not (programs / name).exists():
                (programs / name).symlink_to(Path(program(name)).resolve())
        surroundings = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "KUBECONFIG": str(self.kubeconfig),
            "KUBE_EDITOR": f"sed -i {_EDITS}",
        }
        command = ["sh", "-c", line]
        return subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, check=False, env=surroundings, timeout=200
        )


@dataclass
class PodsOfHooks(PodsOfJobs):
    """The same with a shell script instead of a program of ours."""

    def _run(self, job: Any) -> bool:
        spec, namespace = job["spec"]["template"]["spec"], job["metadata"]["namespace"]
        folder = self.folder / job["metadata"]["uid"]
        folder.mkdir()
        caller = account(self.server, namespace, spec["serviceAccountName"])
        (container,) = spec["containers"]
        done = Shell(folder, caller.write_kubeconfig(folder / "kubeconfig")).run(container["command"][-1])
        self.said += done.stdout + done.stderr
        return done.returncode == 0


@dataclass(frozen=True)
class Controller:
    """A controller of theirs, with the account of its Deployment: it writes while that has a replica.

    `write` gives a Corefile with its lines for the hosts of the Ingresses.
    """

    server: ApiServer
    deployment: str
    caller: Caller
    write: Callable[[str, Sequence[str]], str]
    failures: list[str] = field(default_factory=list)
    idle: threading.Event = field(default_factory=threading.Event)
    """Set while it has no replica, and its last look has ended."""

    @contextmanager
    def running(self) -> Iterator[None]:
        ended = threading.Event()
        thread = threading.Thread(target=self._run, args=[ended])
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _run(self, ended: threading.Event) -> None:
        while not ended.wait(_PAUSE):
            try:
                if self._has_replica():
                    self.idle.clear()
                    self.look()
                else:
                    self.idle.set()
            except PermissionError as error:
                self.failures.append(str(error))

    def _has_replica(self) -> bool:
        namespace, name = self.deployment.split("/")
        found = self.server.request("GET", f"/apis/apps/v1/namespaces/{namespace}/deployments")["items"]
        return any(one["metadata"]["name"] == name and one["spec"]["replicas"] for one in found)

    def look(self) -> None:
        """One look, and one write if something differs. A write that meets another one is left to the next look."""
        rules = (one["spec"].get("tls", ()) for one in self._call("GET", _INGRESSES)["items"])
        hosts = sorted({host for tls in rules for one in tls for host in one["hosts"]})
        found = self._call("GET", _COREFILE)
        text = self.write(found["data"]["Corefile"], hosts)
        if text != found["data"]["Corefile"]:
            self._call("PUT", _COREFILE, {**found, "data": {**found["data"], "Corefile": text}})

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        headers = {"authorization": f"Bearer {self.caller.token}", "content-type": "application/json"}
        with self.caller.connection() as connection:
            connection.request(method, path, json.dumps(body) if body else None, headers)
            response = connection.getresponse()
            text = response.read().decode()
        if response.status not in (200, 409):
            raise PermissionError(f"{method} {path}: {response.status} {text}")
        return json.loads(text)


@dataclass
class Played:
    """A guide that is played, with what its nodes would do."""

    server: ApiServer
    shell: Shell
    pods: PodsOfHooks
    dns: str
    """Where its pods find the cluster's DNS."""
    operate: Watching | None = None
    """Ours, once it is started."""
    taken: bool = True
    """Whether lines of theirs answer hosts before the stanza is asked: then the status is 1 and names them."""

    def play(self, line: str) -> str:
        """One line of the guide. Returns its output; fails if it fails."""
        words = shlex.split(line, comments=True)
        if "exec" in words:
            return self._inside(words[words.index("--") + 1 :])
        if words[:2] == ["kubectl", "run"]:
            # A pod that looks a name up: the caller asks for it after each line.
            return ""
        if "rollout" in words:
            assert self.operate is not None
            self.operate.wait_ready()
            self._say_ready()
        with self.pods.played():
            done = self.shell.run(line)
        # The last command of ouroboros's guide must find nothing, which grep calls a failure.
        wanted = 1 if "grep" in words else 0
        assert done.returncode == wanted, f"{line}\n{done.stdout}{done.stderr}{self.pods.said}"
        self.taken = self.taken and "edit" not in words
        return done.stdout

    def _inside(self, words: Sequence[str]) -> str:
        config = account(self.server, "switchback", "operate").write_kubeconfig(self.shell.folder / "inside")
        command = [sys.executable, "-m", *words, "--kubeconfig", str(config), "--dns", self.dns]
        done = play(command, {**os.environ, "NO_COLOR": "1"})
        said = "before the stanza is asked" in done.stdout
        assert (done.returncode, said) == (int(self.taken), self.taken), done.stdout + done.stderr
        return done.stdout

    def _say_ready(self) -> None:
        """What the kubelet and the Deployment's controller write."""
        path = "/apis/apps/v1/namespaces/switchback/deployments/operate"
        found = self.server.request("GET", path)
        counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
        status = dict.fromkeys(counts, found["spec"]["replicas"])
        status["observedGeneration"] = found["metadata"]["generation"]
        merge = "application/merge-patch+json"
        self.server.request("PATCH", f"{path}/status", {"status": status}, content_type=merge)


def left_of(shell: Shell, word: str) -> list[str]:
    """Every object in the cluster that has this word in its kind, namespace or name, once deletions are carried out."""
    listed = shell.run("kubectl api-resources --verbs=list -o name").stdout.split()
    kinds = ",".join(one for one in listed if not re.match(r"(componentstatuses|endpoints|events)\b", one))
    columns = "KIND:.kind,IN:.metadata.namespace,NAME:.metadata.name"

    def look() -> list[str]:
        done = shell.run(f"kubectl get {kinds} -A --no-headers -o custom-columns={columns}")
        assert done.returncode == 0, done.stderr
        return [line for line in done.stdout.splitlines() if word in line]

    poll_until(lambda: not any("Namespace " in one for one in look()), f"the namespace of {word} ends", seconds=60)
    return look()
