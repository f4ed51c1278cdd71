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
  module_program github.com/cilium/cilium "$1" && hide_modules
}

# cilium_new_program ./PACKAGE: without modules that are not published. Two are only in the list of all modules, one
# is a code generator; the next version of the fourth serves as well.
cilium_new_program() {
  local name
  main_module github.com/cilium/cilium -e '/controller-tools =>/d' || return 1
  for name in conformance controllers; do
    mkdir "$name" && printf 'module sigs.k8s.io/mcs-api/%s\n' "$name" >"$name/go.mod" &&
      go mod edit -replace="sigs.k8s.io/mcs-api/$name=./$name" || return 1
  done
  go mod edit -replace=github.com/osrg/gobgp/v4=github.com/osrg/gobgp/v4@v4.7.0 &&
    go_program "github.com/cilium/cilium${1#.}" && hide_modules
}

hide_modules() {
  # A kernel without modules has neither path; tests/cluster/nodes/cilium.py lists the built-in features there instead.
  LC_ALL=C sed -i 's|/proc/modules|/run/_modules|g; s|/lib/modules|/run/modules|g' "$GOBIN/$PEER"
}
