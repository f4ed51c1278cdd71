"""The installer's Events are a promise to those who select by their words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dnsproxy.install.report import event_reasons
from sidecar.kubernetes.events.event import About, Reason, make_event

ROWS = [
    (event_reasons.INSTALLED, "StanzaInstalled", "dfe0333a", "Normal"),
    (event_reasons.REPAIRED, "StanzaRepaired", "f73db77f", "Normal"),
    (event_reasons.MOVED, "StanzaMoved", "b0caadfd", "Normal"),
    (event_reasons.UNDONE, "StanzaUndone", "f3eb6558", "Warning"),
    (event_reasons.REFUSED, "StanzaRefused", "0364629a", "Warning"),
    (event_reasons.NOT_LOADED, "StanzaNotLoaded", "19ecd227", "Warning"),
    (event_reasons.FAILED, "InstallFailed", "de647b40", "Warning"),
]


@pytest.mark.parametrize(("reason", "name", "digest", "kind"), ROWS, ids=[row[1] for row in ROWS])
def test_an_event_of_an_installer_stays_octet_for_octet(reason: Reason, name: str, digest: str, kind: str) -> None:
    made = make_event(
        event_reasons.INSTALLER,
        About("ConfigMap", "kube-system", "coredns", "123"),
        reason,
        "a\nnote",
        suppressed=2,
        time=datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        instance="pod-1",
    )
    assert made.decode() == (
        '{"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "dnsproxy-install-'
        f'{digest}-6475ef64cf346", "namespace": "kube-system"}}, "eventTime": "2026-01-02T03:04:05.000006Z", '
        '"reportingController": "switchback.dev/dnsproxy-install", "reportingInstance": "pod-1", "action": "Install", '
        f'"reason": "{name}", "regarding": {{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "kube-system", '
        '"name": "coredns", "uid": "123"}, "note": "a note (and 2 more of these since the last Event)", '
        f'"type": "{kind}"}}'
    )
