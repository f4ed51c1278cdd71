# `make` without a target lists the targets. All of them run in .venv, which the first one creates from uv.lock.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The version of uv in the lock file.
UV_VERSION := $(shell sed -n '/^name = "uv"$$/,/^version/s/^version = "\(.*\)"/\1/p' uv.lock)

# uv's cache stands beside the environment where the home folder cannot be written: uv ends without one.
ifndef UV_CACHE_DIR
export UV_CACHE_DIR := $(shell cache="$${XDG_CACHE_HOME:-$$HOME/.cache}"; mkdir -p "$$cache" 2>/dev/null && \
	test -w "$$cache" && echo "$$cache/uv" || echo $(abspath $(VENV))/uv-cache)
endif

# Parallel tests: two for each processor, because a test waits half of its time. At most 4, because each worker may start its own
# Kubernetes API server.
WORKERS ?= $(shell processors=$$(nproc 2>/dev/null || echo 2); echo $$((processors < 2 ? 2 : 4)))

# Bytecode is kept in .venv, also if PYTHONDONTWRITEBYTECODE is set: otherwise each worker and each started program
# compiles all of its modules again: a command such as `dnsproxy table` then takes 0.62 s of processor time, not 0.27.
BYTECODE := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(abspath $(VENV))/bytecode

# ASYNC109: also off in ruff, see pyproject.toml. ASYNC114, 128: they do not recognise a task_status that is passed on.
# ASYNC124: a callback with an async signature may have nothing to wait for.
# ASYNC9xx: optional rules about checkpoints, off by default.
ASYNC_OFF := ASYNC109,ASYNC114,ASYNC124,ASYNC128,ASYNC9

.PHONY: help demo test test-quick test-pythons check check-style check-types check-async format docs peers cluster-peers world-peers cluster-test world-test image release release-peers bench bench-dns bench-relay bench-faults bench-sync bench-wholeip bench-wholeip-events bench-fleet bench-doctor bench-memory mutants soak clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 30

$(VENV)/.synced: pyproject.toml uv.lock
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; name one with: make PYTHON=python3.12 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --no-cache-dir --disable-pip-version-check "uv==$(UV_VERSION)"
	$(BIN)/uv sync --frozen --quiet
	touch $@

demo: $(VENV)/.synced ## run the demonstration on this computer: no cluster, no root (ARGS=--keep leaves it running)
	$(BIN)/dnsproxy demo $(ARGS)

test: $(VENV)/.synced ## run every test; a test whose peer is missing is skipped with a reason
	$(BYTECODE) $(BIN)/pytest --numprocesses=$(WORKERS) --dist=loadfile $(ARGS)

# Nothing in them waits: more workers than processors would only import all tests more often.
test-quick: WORKERS = $(shell nproc 2>/dev/null || echo 2)
test-quick: $(VENV)/.synced ## run the unit tests of the pure core, in less than a minute: after each edit
	$(BYTECODE) $(BIN)/pytest --pure --quiet --numprocesses=$(WORKERS) --dist=loadfile $(ARGS)

test-pythons: $(VENV)/.synced ## run the same on the other Pythons of this computer: 3.12 to 3.15 (ARGS='12 14')
	$(BYTECODE) WORKERS=$(WORKERS) scripts/test-pythons.sh $(ARGS)

check: check-style check-types check-async ## lint, types, layers (-j 3: side by side)

check-style: $(VENV)/.synced
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/uv run --frozen --quiet --isolated --only-group layers lint-imports --no-logo

check-types: $(VENV)/.synced
	$(BIN)/mypy

# It takes a tenth of a second for each file, so only those with something asynchronous are named.
check-async: $(VENV)/.synced
	$(BIN)/flake8-async --disable=$(ASYNC_OFF) $$(git grep -lE '\b(async|trio)\b' -- 'dnsproxy/*.py' 'proxy/*.py' 'release/*.py' 'sidecar/*.py' 'wholeip/*.py')

format: $(VENV)/.synced ## format every file
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(VENV)/.synced ## build the guide into build/guide/site; a broken link is an error
	$(BIN)/python -m docs.build build/guide

bench-dns: $(VENV)/.synced ## compare the DNS server with other installed DNS servers (ARGS=--help)
	$(BIN)/python -m tests.bench.dns $(ARGS)

bench-faults: $(VENV)/.synced ## measure lookups through a real CoreDNS while dnsproxy is dead or hangs (ARGS=--help)
	$(BIN)/python -m tests.bench.faults $(ARGS)

bench-relay: $(VENV)/.synced ## compare the relay with haproxy, nginx and a Go relay (ARGS=--help)
	$(BIN)/python -m tests.bench.relay $(ARGS)

bench-sync: $(VENV)/.synced ## measure the server with 100,000 Ingresses, and objects of mixed kinds, on a real API server (ARGS=--help)
	$(BIN)/python -m tests.bench.sync $(ARGS)

bench-wholeip: $(VENV)/.synced ## measure the cost of wholeip's rules, and the time to load them into the kernel (root; ARGS=--help)
	$(BIN)/python -m tests.bench.wholeip $(ARGS)

bench-wholeip-events: $(VENV)/.synced ## measure the time until a change among 1,000 Services is in a node's kernel (root; ARGS=--help)
	$(BIN)/python -m tests.bench.wholeip_events $(ARGS)

bench-fleet: $(VENV)/.synced ## measure a primary with 2,000 secondaries beside BIND and NSD (root; ARGS=--help)
	$(BIN)/python -m tests.bench.fleet $(ARGS)

bench-doctor: $(VENV)/.synced ## measure doctor, status and the installer on a cluster with 10,000 Ingresses (ARGS=--help)
	$(BIN)/python -m tests.bench.doctor $(ARGS)

bench-memory: $(VENV)/.synced ## measure the memory of dnsproxy, proxy and wholeip (root) at rest, and what starting them takes (ARGS=--help)
	$(BIN)/python -m tests.bench.memory $(ARGS)

bench: $(VENV)/.synced ## measure everything in 20 minutes, and write a page of charts into build/bench (root for some; ARGS=--help)
	$(BIN)/python -m tests.bench $(ARGS)

soak: $(VENV)/.synced ## run the DNS server under mixed traffic and faults for 20 minutes and check for growth (ARGS=--help)
	$(BIN)/python -m tests.soak $(ARGS)

cluster-test: $(VENV)/.synced ## run the end-to-end test on a real Kubernetes with two nodes, built from scratch (root; ARGS=--help)
	$(BIN)/python -m tests.cluster $(ARGS)

world-test: $(VENV)/.synced ## play every combination of tests/cluster/matrix.toml; hours (root; `make world-peers` first; ARGS=NAME)
	$(BIN)/python -m tests.cluster.play_all $(ARGS)

# It needs no .venv, and reads IMAGE, TARGET, BUILDER and ARGS itself.
image: ## build the image, and an archive of it for nodes: build/switchback.tar (docker, podman or buildah; IMAGE=REGISTRY/NAME)
	@scripts/image.sh

# IMAGE=registry.example.org/switchback names the image; without it pyproject.toml does.
release: $(VENV)/.synced ## build a release from a clean tag into dist/ (IMAGE=REGISTRY/NAME; ARGS=--help)
	@$(BIN)/python -m release $(if $(IMAGE),--image='$(IMAGE)') $(ARGS)

release-peers: ## fetch what release needs: buildah, skopeo, kubectl, helm (root, Debian packages, Go)
	scripts/peers.sh --release

cluster-peers: peers ## fetch what cluster-test needs besides peers: kubelet, kube-proxy, containerd ...
	scripts/peers.sh --cluster

world-peers: cluster-peers ## fetch what world-test needs besides cluster-peers: other controllers and versions
	scripts/peers.sh --world

peers: ## fetch and build the real programs that the tests compare with (root, Debian packages, Go)
	scripts/peers.sh
	scripts/peers-clients.sh

mutants: $(VENV)/.synced ## judge small faults in every package: does a test notice each of them? (ARGS=--help)
	$(BIN)/python -m tests.mutants $(ARGS)

clean: ## remove .venv and caches
	rm -rf build $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
