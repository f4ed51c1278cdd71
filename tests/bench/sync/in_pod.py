"""`dnsproxy` as it runs in a pod, with the ServiceAccount's files in another folder than the kubelet's.

    KUBERNETES_SERVICE_HOST=... KUBERNETES_SERVICE_PORT=... python -m tests.bench.sync.in_pod FOLDER serve ...

The law: nothing else differs. By a kubeconfig it would import the `kubernetes` package, which no pod does; and no image
has `rich`, which comes with our linters and which structlog imports wherever it is.
"""

from __future__ import annotations

import sys
from pathlib import Path


def run(folder: str, *arguments: str) -> None:
    """The program, to its end."""
    sys.modules["rich"] = None  # type: ignore[assignment]  # an import of it now fails, as where it is not installed
    from dnsproxy.cli import main  # noqa: PLC0415  # not before it is hidden
    from sidecar.kubernetes import config  # noqa: PLC0415

    defaults = config.load_cluster.__kwdefaults__
    assert defaults is not None
    assert "service_account" in defaults
    defaults["service_account"] = Path(folder)
    main(list(arguments), prog_name="dnsproxy")


if __name__ == "__main__":
    run(*sys.argv[1:])
