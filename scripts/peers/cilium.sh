# shellcheck shell=bash
# Cilium, for `make cluster-test` with `--cni cilium` and `--cni cilium-alone`.

# From 1.17.0 on, except for 1.18.0, it honours ipMode.
CILIUM_VERSION=v1.17.8
# The agent compiles its programs for the kernel when it starts.
CILIUM_DEBIAN=(clang:clang llvm:llc bpftool:bpftool)

cilium_peers() {
  peer cilium-bpf "$CILIUM_VERSION" module_folder github.com/cilium/cilium bpf
  peer cilium-crds "$CILIUM_VERSION" module_folder github.com/cilium/cilium pkg/k8s/apis/cilium.io/client/crds
  peer cilium-cni "$CILIUM_VERSION" cilium_program ./plugins/cilium-cni
  peer cilium-agent "$CILIUM_VERSION" cilium_program ./daemon
}

# cilium_program ./PACKAGE
cilium_program() {
  module_program github.com/cilium/cilium "$1" &&
    # A kernel without modules has neither path; tests/cluster/nodes/cilium.py lists the built-in features there instead.
    LC_ALL=C sed -i 's|/proc/modules|/run/_modules|g; s|/lib/modules|/run/modules|g' "$GOBIN/$PEER"
}
