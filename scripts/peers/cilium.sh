# shellcheck shell=bash
# Cilium, for `make cluster-test` with `--cni cilium` and `--cni cilium-alone`.

CILIUM_VERSION=v1.20.2
# The agent compiles its programs for the kernel when it starts, with clang 18.1 or later.
CILIUM_DEBIAN=(clang-19:clang-19)

cilium_peers() {
  local cilium=github.com/cilium/cilium
  peer cilium-bpf "$CILIUM_VERSION" module_folder "$cilium" bpf
  peer cilium-crds "$CILIUM_VERSION" module_folder "$cilium" pkg/k8s/apis/cilium.io/client/crds
  peer cilium-cni "$CILIUM_VERSION" cilium_program ./plugins/cilium-cni
  peer cilium-agent "$CILIUM_VERSION" cilium_program ./daemon
}

# cilium_program ./PACKAGE: without modules that are not published. Two are only in the list of all modules, one is a
# code generator; the next version of the fourth serves as well.
cilium_program() {
  local name
  main_module github.com/cilium/cilium -e '/controller-tools =>/d' || return 1
  for name in conformance controllers; do
    mkdir "$name" && printf 'module sigs.k8s.io/mcs-api/%s\n' "$name" >"$name/go.mod" &&
      go mod edit -replace="sigs.k8s.io/mcs-api/$name=./$name" || return 1
  done
  go mod edit -replace=github.com/osrg/gobgp/v4=github.com/osrg/gobgp/v4@v4.7.0 &&
    go_program "github.com/cilium/cilium${1#.}"
}
