"""A real Contour on an API server, without an Envoy: it is asked for the configuration that Envoy would get.

The law: it is asked only after its first configuration of all objects; its count of configurations says when.
"""

from __future__ import annotations

import http.client
import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from tests.differential.envoy_tables import EnvoyTables, Resource, read_tables
from tests.kit.processes import end_process, is_listening, wait_for
from tests.kit.programs import program

INGRESS_CONTROLLER: Final = "projectcontour.io/ingress-controller"
GATEWAY_CONTROLLER: Final = "projectcontour.io/gateway-controller"
CLASS: Final = "contour"

PORTS: Final = 4
"""How many ports one Contour needs."""
_RATE: Final = "10000"
"""Requests a second to the API server: the status of a thousand objects is written at once."""
_CONFIGURED: Final = re.compile(rb"^contour_dagrebuild_total [1-9]", re.MULTILINE)
"""It rebuilds only when it has all objects (internal/contour/handler.go), but counts before it has rebuilt."""
_STORED: Final = re.compile(rb"^contour_cachehandler_onupdate_duration_seconds_count [1-9]", re.MULTILINE)
_SECONDS: Final = 10


@contextmanager
def running_contour(
    folder: Path, kubeconfig: Path, *flags: str, ports: Sequence[int], config: Mapping[str, Any]
) -> Iterator[int]:
    """Contour with a configuration file, until the end of the block: the port of its xDS server. `ports`: PORTS."""
    xds, metrics, health, debug = ports
    path = folder / "contour.yaml"
    path.write_text(yaml.safe_dump(dict(config)), encoding="utf-8")
    command = [
        program("contour"),
        "serve",
        "--insecure",
        "--disable-leader-election",
        f"--config-path={path}",
        f"--kubeconfig={kubeconfig}",
        f"--kubernetes-client-qps={_RATE}",
        f"--kubernetes-client-burst={_RATE}",
        *_listening("xds", xds),
        *_listening("http", metrics),
        *_listening("health", health),
        *_listening("debug-http", debug),
        *flags,
    ]
    log = folder / "contour.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        wait_for(lambda: is_listening(xds) and _is_configured(metrics), process=process, log=log)
        yield xds
    finally:
        end_process(process)


def read_contour(port: int) -> EnvoyTables:
    """What Contour tells an Envoy now."""
    return read_tables(_ask(port, "lds"), _ask(port, "rds"))


def _listening(name: str, port: int) -> tuple[str, str]:
    return f"--{name}-address=127.0.0.1", f"--{name}-port={port}"


def _is_configured(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    try:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read()
    except OSError:
        return False
    finally:
        connection.close()
    return _CONFIGURED.search(text) is not None and _STORED.search(text) is not None


def _ask(port: int, service: str) -> list[Resource]:
    command = [program("contour"), "cli", service, "--contour", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            return _first_response(process)
        finally:
            end_process(process)


def _first_response(process: subprocess.Popen[bytes]) -> list[Resource]:
    """The resources of the first response; requests are printed too, and have no nonce of their own."""
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line.decode()
        if line == b"}\n":
            document = json.loads(text)
            if "nonce" in document:
                return list(document.get("resources", ()))
            text = ""
    raise AssertionError(f"{process.args!r} ended: {text}")
