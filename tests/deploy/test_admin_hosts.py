"""The names of our Services by which the admin ports are asked, as the manifests set them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy.manifests import DEPLOY, compose, find, render, settings_of

FORMS = ("{}", "{}.switchback", "{}.switchback.svc", "{}.switchback.svc.cluster.local")


@pytest.mark.peer("kubectl")
@pytest.mark.parametrize(
    ("program", "variable", "services"),
    [
        ("dnsproxy", "DNSPROXY_ADMIN_HOST", ("dnsproxy-admin", "dnsproxy-metrics")),
        ("relay", "PROXY_ADMIN_HOST", ("relay-metrics",)),
        ("operate", "DNSPROXY_ADMIN_HOST", ("operate",)),
    ],
)
def test_each_form_of_a_services_name_is_known(
    program: str, variable: str, services: tuple[str, ...], tmp_path: Path
) -> None:
    chosen = [DEPLOY / "components" / one for one in ("publishing", "monitoring")]
    manifests = render(compose(tmp_path, with_components=chosen))
    template = find(manifests, "Deployment", program)["spec"]["template"]
    for service in services:
        assert find(manifests, "Service", service)["metadata"]["namespace"] == "switchback"
    expected = {form.format(service) for service in services for form in FORMS}
    assert set(settings_of(manifests, template)[variable].split()) == expected
