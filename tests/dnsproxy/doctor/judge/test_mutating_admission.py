"""Which version of MutatingAdmissionPolicy is used, and why there is none."""

from __future__ import annotations

import pytest

from dnsproxy.doctor.judge.mutating_admission import PLURAL, resources_path, served_version, why_none

SERVED = [
    pytest.param({}, "", id="nothing"),
    pytest.param({"v1": ["validatingadmissionpolicies"]}, "", id="a server that has only the validating kind"),
    pytest.param({"v1": ["validatingadmissionpolicies"], "v1beta1": [PLURAL]}, "v1beta1", id="the beta is on"),
    pytest.param({"v1": [PLURAL], "v1beta1": [PLURAL]}, "v1", id="both"),
    pytest.param({"v1alpha1": [PLURAL]}, "", id="an alpha is never used"),
]


@pytest.mark.parametrize(("resources", "version"), SERVED)
def test_the_best_served_version_is_used(resources: dict[str, list[str]], version: str) -> None:
    assert served_version(resources) == version


@pytest.mark.parametrize(
    ("server", "said"),
    [
        pytest.param("v1.33.5", "upgrade to 1.36", id="before the beta"),
        pytest.param("v1.34.4", "--feature-gates=MutatingAdmissionPolicy=true", id="the beta is off"),
        pytest.param("v1.35.4+k3s1", "--runtime-config=", id="the beta is off, of a distribution"),
        pytest.param("v1.36.3", "turned off", id="turned off where it is on by default"),
        pytest.param("", "unknown version", id="no version"),
        pytest.param("garbage", "garbage", id="no version that can be read"),
    ],
)
def test_the_reason_names_the_version_and_what_to_do_instead(server: str, said: str) -> None:
    text = why_none(server)
    assert said in text
    assert "dnsproxy ip-mode --watch" in text


def test_a_version_is_asked_for_at_its_list_of_resources() -> None:
    assert resources_path("v1") == "/apis/admissionregistration.k8s.io/v1"
