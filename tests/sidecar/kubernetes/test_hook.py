"""A hook of Helm refuses to run if another program made its Job."""

from __future__ import annotations

import pytest

from sidecar.kubernetes.hook import applied_by, check_hook
from sidecar.values.errors import StartError
from tests.kit.object_api import ObjectApi, client_of

JOB = "/apis/batch/v1/namespaces/switchback/jobs/switchback-removal"


def made_by(*managers: str) -> ObjectApi:
    api = ObjectApi()
    api.put(JOB, {"metadata": {"managedFields": [{"manager": one} for one in managers]}})
    return api


@pytest.mark.parametrize(
    "managers",
    [["helm"], ["helm", "kube-controller-manager"], ["helm-controller"], ["terraform-provider-helm_v3.0.2_x5"], []],
    ids=str,
)
async def test_helm_and_what_embeds_it_may_run_it(managers: list[str]) -> None:
    async with client_of(made_by(*managers)) as client:
        await check_hook(client, "switchback", "switchback-removal")


@pytest.mark.parametrize(
    "manager",
    ["kubectl", "kubectl-client-side-apply", "kubectl-create", "argocd-controller", "kustomize-controller"],
)
async def test_a_program_that_knows_no_hooks_is_named(manager: str) -> None:
    assert applied_by(["helm", manager]) == manager
    async with client_of(made_by(manager)) as client:
        with pytest.raises(StartError, match=rf"switchback-removal is a hook of Helm, and {manager} made it") as caught:
            await check_hook(client, "switchback", "switchback-removal")
    assert caught.value.status == 1


@pytest.mark.parametrize("code", [403, 404])
async def test_what_cannot_be_known_is_refused(code: int) -> None:
    api = ObjectApi(refusals={("GET", "switchback-removal"): (code, "no")})
    async with client_of(api) as client:
        with pytest.raises(StartError, match="nothing was changed") as caught:
            await check_hook(client, "switchback", "switchback-removal")
    assert caught.value.status == 3
