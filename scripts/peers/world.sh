# shellcheck shell=bash
# The further programs of `make world-test`: other controllers and versions. A program that does not build here makes its
# tests skip.

# Newer than the CoreDNS of `make test`, so it has a name of its own: tests take the highest version of a name.
COREDNS_NEW_VERSION=v1.15.0
# Between the two API servers of `make test`, and it answers as the older one does.
KUBERNETES_MIDDLE_VERSION=v1.35.4
ENVOY_GATEWAY_VERSION=v1.9.1

world_peers() {
  ingress_peers
  other_versions
}

ingress_peers() {
  local envoy_gateway=github.com/envoyproxy/gateway
  optional skipper "$SKIPPER_VERSION" module_program "$SKIPPER" ./cmd/skipper -X "main.version=$SKIPPER_VERSION"
  optional envoy-gateway "$ENVOY_GATEWAY_VERSION" module_program "$envoy_gateway" ./cmd/envoy-gateway \
    -X "$envoy_gateway/internal/cmd/version.envoyGatewayVersion=$ENVOY_GATEWAY_VERSION"
  optional egctl "$ENVOY_GATEWAY_VERSION" module_program "$envoy_gateway" ./cmd/egctl \
    -X "$envoy_gateway/internal/cmd/version.envoyGatewayVersion=$ENVOY_GATEWAY_VERSION"
  # Its resource definitions, and the Gateway API's of the same release
  optional envoy-gateway-crds "$ENVOY_GATEWAY_VERSION" module_folder "$envoy_gateway" \
    charts/gateway-helm/charts/crds/crds
  optional traefik "$TRAEFIK_VERSION" traefik
}

# Peers of `make test` and `make cluster-test` in other versions
other_versions() {
  local name
  optional coredns-new "$COREDNS_NEW_VERSION" module_program github.com/coredns/coredns .
  optional kube-apiserver "$KUBERNETES_MIDDLE_VERSION" kubernetes_program
  # A node of an older cluster
  for name in "${CLUSTER_KUBERNETES[@]}"; do
    optional "$name" "$KUBERNETES_OLD_VERSION" kubernetes_program
  done
}

# Traefik without its providers for DNS-01 challenges. All lie in one module, which we replace by a changed copy.
traefik() {
  local lego=github.com/go-acme/lego/v4 folder
  main_module "$TRAEFIK" && go mod download "$lego" && folder=$(go list -m -f '{{.Dir}}' "$lego") && cp -r "$folder" lego && chmod -R u+w lego &&
    cp "$HERE/../tests/cluster/world/traefik/no_dns_providers.go" lego/providers/dns/zz_gen_dns_providers.go &&
    go mod edit -replace="$lego=./lego" &&
    go_program "$TRAEFIK/cmd/traefik" -X "$TRAEFIK/pkg/version.Version=${VERSION#v}"
}
