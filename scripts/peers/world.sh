# shellcheck shell=bash
# The further programs of `make world-test`: other controllers and versions. A program that does not build here makes its
# tests skip.

# Newer than the CoreDNS of `make test`, so it has a name of its own: tests take the highest version of a name.
COREDNS_NEW_VERSION=v1.15.0
# A node of an older cluster. Its API server is among KUBERNETES_OLDER_VERSIONS.
KUBERNETES_OLD_VERSION=v1.34.4
# Newer than those of `make test`. Both need Go 1.27, or a go command that may fetch it (GOTOOLCHAIN=auto).
GATEWAY_API_NEW_VERSION=v1.7.0
EXTERNAL_DNS_NEW_VERSION=v0.23.0
ENVOY_GATEWAY_VERSION=v1.9.1
# Its agent needs clang 18.1 or later.
CILIUM_NEW_VERSION=v1.20.2

# A registry to pull images from, a Git server over SSH, and what the newer Cilium's agent runs.
WORLD_DEBIAN=(
  docker-registry:docker-registry openssh-server:sshd openssh-client:ssh git:git
  clang-19:clang-19 bpftool:bpftool
)

world_peers() {
  optional metallb-speaker "$METALLB_VERSION" module_program go.universe.tf/metallb ./speaker
  ingress_peers
  other_versions
}

ingress_peers() {
  local envoy_gateway=github.com/envoyproxy/gateway
  optional skipper "$SKIPPER_VERSION" module_program "$SKIPPER" ./cmd/skipper -X "main.version=$SKIPPER_VERSION"
  optional envoy-gateway "$ENVOY_GATEWAY_VERSION" module_program "$envoy_gateway" ./cmd/envoy-gateway \
    -X "$envoy_gateway/internal/cmd/version.envoyGatewayVersion=$ENVOY_GATEWAY_VERSION"
  # Its resource definitions, and the Gateway API's of the same release
  optional envoy-gateway-crds "$ENVOY_GATEWAY_VERSION" module_folder "$envoy_gateway" \
    charts/gateway-helm/charts/crds/crds
  optional traefik "$TRAEFIK_VERSION" traefik
}

# Peers of `make test` and `make cluster-test` in other versions
other_versions() {
  local name external_dns=sigs.k8s.io/external-dns
  optional coredns-new "$COREDNS_NEW_VERSION" module_program github.com/coredns/coredns .
  for name in "${CLUSTER_KUBERNETES[@]}"; do
    optional "$name" "$KUBERNETES_OLD_VERSION" kubernetes_program
  done
  optional gateway-api-new "$GATEWAY_API_NEW_VERSION" module_folders sigs.k8s.io/gateway-api \
    config/crd/{standard,experimental}
  optional external-dns-new "$EXTERNAL_DNS_NEW_VERSION" module_program "$external_dns" .
  optional dnsendpoint-new "$EXTERNAL_DNS_NEW_VERSION" module_folder "$external_dns" config/crd/standard
  cilium_new_peers
}

cilium_new_peers() {
  local cilium=github.com/cilium/cilium
  optional cilium-new-bpf "$CILIUM_NEW_VERSION" module_folder "$cilium" bpf
  optional cilium-new-crds "$CILIUM_NEW_VERSION" module_folder "$cilium" pkg/k8s/apis/cilium.io/client/crds
  optional cilium-new-cni "$CILIUM_NEW_VERSION" cilium_new_program ./plugins/cilium-cni
  optional cilium-new-agent "$CILIUM_NEW_VERSION" cilium_new_program ./daemon
}

# Traefik without its providers for DNS-01 challenges. All lie in one module, which we replace by a changed copy.
traefik() {
  local lego=github.com/go-acme/lego/v4 folder
  main_module "$TRAEFIK" && folder=$(go list -m -f '{{.Dir}}' "$lego") && cp -r "$folder" lego && chmod -R u+w lego &&
    cp "$HERE/../tests/cluster/world/traefik/no_dns_providers.go" lego/providers/dns/zz_gen_dns_providers.go &&
    go mod edit -replace="$lego=./lego" &&
    go_program "$TRAEFIK/cmd/traefik" -X "$TRAEFIK/pkg/version.Version=${VERSION#v}"
}
