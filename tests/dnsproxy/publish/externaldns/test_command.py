"""`dnsproxy publish-external-dns` from its command line, with its program; tests/peers runs it with an API server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dnsproxy.admin.publication import format_document
from dnsproxy.publish.externaldns.manifests import PREFIXES
from tests.kit.prepared_program import shared
from tests.kit.publications import many


def run(folder: Path, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """Status, stdout and stderr; no API server answers in the cluster."""
    names = folder / "names.json.gz"
    names.write_bytes(format_document(many(3)).octets)
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        "{clusters: [{name: a, cluster: {server: 'http://127.0.0.1:9'}}], users: [{name: a, user: {token: t}}],"
        " contexts: [{name: a, context: {cluster: a, user: a, namespace: edge}}], current-context: a}"
    )
    settings = {"DNSPROXY_FROM_FILE": str(names), "DNSPROXY_KUBECONFIG": str(kubeconfig)}
    done = shared("dnsproxy").run(
        "publish-external-dns", *arguments, environment={**os.environ, **settings, **environment}
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        pytest.param(["--once"], 2, "--instance: is required", id="no instance"),
        pytest.param(["--instance", "a b"], 2, "--instance: 'a b' is not a label value", id="a bad instance"),
        pytest.param(["--instance", "a", "--ttl", "0"], 2, "--ttl: 0 is not in the range", id="no ttl"),
        pytest.param(["--instance", "a", "--ttl", "86401"], 2, "--ttl: 86401 is not in the range", id="a long ttl"),
        pytest.param(["--instance", "a", "--namespace", "A"], 2, "'A' is not the name", id="a bad namespace"),
        pytest.param(["--instance", "a", "--output", "json"], 2, "--output: 'json' is not one of", id="a bad output"),
        pytest.param(["--instance", "a", "--annotation-prefix", "x"], 2, "is not a prefix such as", id="a bad prefix"),
        pytest.param(["--instance", "a", "--label", "x"], 2, "--label: 'x' is not KEY=VALUE", id="a bad label"),
        *(
            pytest.param(
                ["--instance", "a", "--annotation", f"{prefix}target=192.0.2.1"],
                2,
                "the publisher sets it",
                id=f"an annotation of ours, {prefix}",
            )
            for prefix in PREFIXES
        ),
        pytest.param(
            ["--instance", "a", *(word for number in range(33) for word in ("--label", f"l{number}=x"))],
            2,
            "--label: at most 32",
            id="too many labels",
        ),
        pytest.param(["--instance", "a", "--once", "--remove"], 2, "--once and --remove", id="two things at once"),
        pytest.param(["--instance", "a", "--once"], 3, "DNSEndpoints in namespace edge: ", id="no API server"),
        pytest.param(["--instance", "a", "--dry-run"], 3, "DNSEndpoints in namespace edge: ", id="none for a dry run"),
        pytest.param(["--instance", "a", "--remove"], 3, "DNSEndpoints in namespace edge: ", id="none to remove from"),
        pytest.param(["--instance", "a", "--kubeconfig", "/nowhere"], 3, "/nowhere", id="no kubeconfig"),
        pytest.param(["--instance", "a", "--once", "--from-file", "/nowhere/x"], 3, "No such file", id="no table"),
    ],
)
def test_what_cannot_be_done_is_told_with_a_status(
    tmp_path: Path, arguments: list[str], status: int, said: str
) -> None:
    code, output, errors = run(tmp_path, *arguments)
    assert (code, output) == (status, "")
    assert said in errors
    assert "Traceback" not in errors


def test_all_bad_values_are_told_together_and_name_their_variables(tmp_path: Path) -> None:
    bad = {"DNSPROXY_TTL": "x", "DNSPROXY_NAMESPACE": "-", "DNSPROXY_INSTANCE": "", "DNSPROXY_INTERVAL": "0"}
    status, _, errors = run(tmp_path, **bad)
    assert status == 2
    assert len(errors.splitlines()) == 4
    assert "--ttl (from DNSPROXY_TTL)" in errors
    assert "--namespace (from DNSPROXY_NAMESPACE)" in errors
