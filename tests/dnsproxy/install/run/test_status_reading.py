"""Status reading: independent requests run side by side, and a server that does not answer is one plain error."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from dnsproxy.cluster_dns.found import ServiceRef
from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.install.run import status_reading
from dnsproxy.install.run.status_reading import StatusRequest, read_status
from sidecar.kubernetes.http import ApiClient
from sidecar.values.errors import StartError
from tests.dnsproxy.doctor.collect.cluster_api import Api

REQUEST = StatusRequest(ServiceRef(), ObjectRef("switchback", "dnsproxy"))


def use(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def load(**_: object) -> ApiClient:
        return api.client()

    monkeypatch.setattr(status_reading, "load_client", load)


async def test_a_slow_server_costs_a_few_rounds(monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock) -> None:
    api = Api({}, delay=lambda _: 1.0)
    use(api, monkeypatch)
    report = await read_status(REQUEST)
    assert report.found.service is None
    assert len(api.asked) > 7
    assert autojump_clock.current_time() < 5


@pytest.mark.parametrize("code", [401, 500, 503])
@pytest.mark.parametrize(
    "path",
    ["/api/v1/namespaces/kube-system/services/kube-dns", "/api/v1/namespaces/switchback/services/dnsproxy"],
    ids=["the cluster's DNS", "dnsproxy's Service"],
)
async def test_a_server_that_cannot_be_used_is_one_error(path: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    use(Api({}, status={path: code}), monkeypatch)
    with pytest.raises(StartError, match="could not be asked") as caught:
        await read_status(REQUEST)
    assert caught.value.status == 3
