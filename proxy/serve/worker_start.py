"""The first module of a worker process: it defers what the worker's libraries do not use, then imports the worker.

`python -m proxy.serve.worker_start DESCRIPTOR`.
"""

from __future__ import annotations

import sys

from sidecar.cli.deferred_modules import UNUSED, defer_modules

defer_modules(*UNUSED)

if __name__ == "__main__":
    from proxy.serve.worker import main

    main(sys.argv[1:])
