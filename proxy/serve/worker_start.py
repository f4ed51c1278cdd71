"""The first module of a worker process: it defers what the worker's libraries do not use, then imports the worker.

`python -m proxy.serve.worker_start DESCRIPTOR`.
"""

from __future__ import annotations

import sys

from sidecar.cli.deferred_modules import defer_unused_modules

defer_unused_modules()

if __name__ == "__main__":
    from proxy.serve.worker import main

    main(sys.argv[1:])
