# Bare `make` prints what there is. Everything runs in .venv, made from uv.lock on first use.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The version of uv that the lock file was written with.
UV_VERSION := $(shell sed -n '/^name = "uv"$$/,/^version/s/^version = "\(.*\)"/\1/p' uv.lock)

# How many tests run at once: many wait more than they work, and each worker may start a Kubernetes API server of its own.
WORKERS ?= $(shell processors=$$(nproc 2>/dev/null || echo 2); echo $$((processors < 4 ? processors : 4)))

# ASYNC109: ruff has it off with the reason. ASYNC114, 128: a task_status is handed on, which they cannot see.
# ASYNC124: a callback of an async signature may have nothing to wait for.
# ASYNC9xx: optional rules of checkpoints, off as by default.
ASYNC_OFF := ASYNC109,ASYNC114,ASYNC124,ASYNC128,ASYNC9

.PHONY: help demo test test-quick check format docs peers cluster-peers cluster-test bench bench-dns bench-relay bench-faults bench-sync bench-wholeip bench-wholeip-events soak clean

help: ## print this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

$(VENV)/.synced: pyproject.toml uv.lock
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; name one with: make PYTHON=python3.12 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check "uv==$(UV_VERSION)"
	$(BIN)/uv sync --frozen --quiet
	touch $@

demo: $(VENV)/.synced ## play the whole story on this computer: no cluster, no root (ARGS=--keep leaves it running)
	$(BIN)/dnsproxy demo $(ARGS)

test: $(VENV)/.synced ## run every test; one that needs a missing peer is skipped and says which
	$(BIN)/pytest --numprocesses=$(WORKERS) --dist=loadfile $(ARGS)

test-quick: $(VENV)/.synced ## run the unit tests of the pure core, in less than a minute: after each edit
	$(BIN)/pytest --pure --quiet --numprocesses=$(WORKERS) --dist=loadfile $(ARGS)

check: $(VENV)/.synced ## lint, types, layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/flake8-async --disable=$(ASYNC_OFF) $$(git ls-files 'dnsproxy/*.py' 'proxy/*.py' 'sidecar/*.py' 'wholeip/*.py')

format: $(VENV)/.synced ## put every file into the house form
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(VENV)/.synced ## build the guide into build/guide/site; a link that leads nowhere is an error
	$(BIN)/python -m docs.build build/guide

bench-dns: $(VENV)/.synced ## measure the DNS server beside the others that are installed (ARGS=--help)
	$(BIN)/python -m tests.bench.dns $(ARGS)

bench-faults: $(VENV)/.synced ## measure what a dead or hanging dnsproxy costs the lookups behind a real CoreDNS (ARGS=--help)
	$(BIN)/python -m tests.bench.faults $(ARGS)

bench-relay: $(VENV)/.synced ## measure the relay beside haproxy, nginx and a Go relay (ARGS=--help)
	$(BIN)/python -m tests.bench.relay $(ARGS)

bench-sync: $(VENV)/.synced ## measure the server with 10,000 and 100,000 Ingresses on a real API server (ARGS=--help)
	$(BIN)/python -m tests.bench.sync $(ARGS)

bench-wholeip: $(VENV)/.synced ## measure what the rules of wholeip cost, and how soon they are the kernel's (root; ARGS=--help)
	$(BIN)/python -m tests.bench.wholeip $(ARGS)

bench-wholeip-events: $(VENV)/.synced ## measure how soon a change among 1,000 Services is in a node's kernel (root; ARGS=--help)
	$(BIN)/python -m tests.bench.wholeip_events $(ARGS)

bench: bench-dns bench-relay bench-faults bench-sync bench-wholeip bench-wholeip-events ## all benchmarks

soak: $(VENV)/.synced ## run the DNS server in mixed traffic and faults for 20 minutes and see whether it grows (ARGS=--help)
	$(BIN)/python -m tests.soak $(ARGS)

cluster-test: $(VENV)/.synced ## play the scene on a real Kubernetes of one node, built from scratch (root; ARGS=--help)
	$(BIN)/python -m tests.cluster $(ARGS)

cluster-peers: peers ## what cluster-test takes besides peers: kubelet, kube-proxy, containerd ...
	scripts/peers.sh --cluster

peers: ## fetch and build the real programs that judge us (root, Debian packages, Go)
	scripts/peers.sh

clean: ## remove .venv and caches
	rm -rf build $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
