# shellcheck shell=bash
# The peers of `make test` and of the benchmarks.

COREDNS_VERSION=v1.14.7
# The first that builds becomes `coredns-old`: v1.9.4 is the first that accepts several `forward` in one server block.
COREDNS_OLD_VERSIONS=(v1.9.4 v1.10.0 v1.10.1 v1.11.4)
KUBERNETES_VERSION=v1.36.3
# Its API server alone: what older clusters answer to `dnsproxy ip-mode`.
KUBERNETES_OLD_VERSION=v1.34.4
METALLB_VERSION=v0.15.2
GATEWAY_API_VERSION=v1.7.0
EXTERNAL_DNS_VERSION=v0.23.0
# What these two need; the go command fetches it like a module.
NEWER_GO=go1.27.0
GO_PROXYPROTO_VERSION=v0.15.0
PROMETHEUS_OPERATOR_VERSION=v0.85.0
KUBE_SCORE_VERSION=v1.20.0
KREW_VERSION=v0.4.3
ACTIONLINT_VERSION=v1.7.12
HELM_VERSION=v4.3.1
KUBECONFORM_VERSION=v0.8.0
DNSTAP_VERSION=v0.4.0
CONTOUR_VERSION=v1.33.8
# The next minor version needs modules that are not published.
TRAEFIK_VERSION=v3.6.12
ISTIO_API_VERSION=v1.32.0
OPENSHIFT_API_VERSION=v0.0.0-20251015095338-264e80a2b6e7
CONTOUR=github.com/projectcontour/contour
TRAEFIK=github.com/traefik/traefik/v3

basic_peers() {
  local version
  peer coredns "$COREDNS_VERSION" module_program github.com/coredns/coredns .
  # Its golang.org/x/net links to a runtime symbol that Go 1.23 and later hide, unless the linker's check is off.
  optional_first coredns-old "${COREDNS_OLD_VERSIONS[*]}" module_program github.com/coredns/coredns . -checklinkname=0
  for version in "$KUBERNETES_VERSION" "$KUBERNETES_OLD_VERSION"; do
    peer kube-apiserver "$version" kubernetes_program
  done
  peer kubectl "$KUBERNETES_VERSION" kubernetes_program
  peer metallb-controller "$METALLB_VERSION" module_program go.universe.tf/metallb ./controller
  peer metallb-crds "$METALLB_VERSION" module_folder go.universe.tf/metallb config/crd/bases
  peer metallb-manifests "$METALLB_VERSION" metallb_manifests
  GOTOOLCHAIN=$NEWER_GO peer gateway-api "$GATEWAY_API_VERSION" module_folders sigs.k8s.io/gateway-api \
    config/crd/{standard,experimental}
  GOTOOLCHAIN=$NEWER_GO peer dnsendpoint "$EXTERNAL_DNS_VERSION" module_folder sigs.k8s.io/external-dns config/crd/standard
  GOTOOLCHAIN=$NEWER_GO peer external-dns "$EXTERNAL_DNS_VERSION" external_dns
  source_crds
  optional go-proxyproto "$GO_PROXYPROTO_VERSION" go_proxyproto
  peer helm "$HELM_VERSION" helm_program
  peer kubeconform "$KUBECONFORM_VERSION" module_program github.com/yannh/kubeconform ./cmd/kubeconform
  peer kube-score "$KUBE_SCORE_VERSION" module_program github.com/zegl/kube-score ./cmd/kube-score
  # The collector that its own authors publish
  peer dnstap "$DNSTAP_VERSION" module_program github.com/dnstap/golang-dnstap ./dnstap
  # The judge of kubectl plugins' manifests, and what installs them
  peer validate-krew-manifest "$KREW_VERSION" module_program sigs.k8s.io/krew ./cmd/validate-krew-manifest
  peer krew "$KREW_VERSION" module_program sigs.k8s.io/krew ./cmd/krew
  # The linter of the workflows in .github
  peer actionlint "$ACTIONLINT_VERSION" module_program github.com/rhysd/actionlint ./cmd/actionlint
  peer prometheus-operator "$PROMETHEUS_OPERATOR_VERSION" module_folder \
    github.com/prometheus-operator/prometheus-operator example/prometheus-operator-crd
  debian_base
  pythons
  peer go-relay "$RELAY_VERSION" go_relay
}

# The definitions of the kinds that dnsproxy reads hostnames from, each of its own project
source_crds() {
  # All manifests of Contour's own installation
  peer contour-crds "$CONTOUR_VERSION" module_folder "$CONTOUR" examples/contour
  peer traefik-crds "$TRAEFIK_VERSION" module_folders "$TRAEFIK" \
    docs/content/reference/dynamic-configuration/kubernetes-{crd-definition-v1,crd-rbac,gateway-rbac}.yml
  peer istio-crds "$ISTIO_API_VERSION" module_folder istio.io/api kubernetes
  peer openshift-crds "$OPENSHIFT_API_VERSION" module_folder github.com/openshift/api route/v1/zz_generated.crd-manifests
}

# external-dns with the providers and registries that tests use: the client libraries of the others are most of its build.
# Three modules have other versions, as those in its go.mod are not published.
external_dns() {
  local module=sigs.k8s.io/external-dns folder
  main_module "$module" && folder=$(module_path "$module" Dir) && cp -r "$folder" external-dns && chmod -R u+w external-dns &&
    keep_constructors 'inmemory|rfc2136|webhook' external-dns/provider/factory/provider.go &&
    keep_constructors 'noop|txt' external-dns/registry/factory/registry.go &&
    go mod edit -replace="$module=./external-dns" \
      -replace=github.com/civo/civogo=github.com/civo/civogo@v0.7.2 \
      -replace=github.com/exoscale/egoscale/v3=github.com/exoscale/egoscale/v3@v3.1.46 \
      -replace=github.com/openshift/api=github.com/openshift/api@v0.0.0-20251015095338-264e80a2b6e7 &&
    go_program "$module"
}

# keep_constructors 'NAME|...' FILE: removes the others from a factory's imports and its map
keep_constructors() {
  sed -i -E -e "\\@external-dns/(provider|registry)/[a-z0-9]+\"@{/\/($1)\"/!d}" \
    -e "/externaldns\.(Provider|Registry)[A-Za-z0-9]+:/{/ ($1)\.New/!d}" "$2"
}

# The program $PEER of Kubernetes. k8s.io/kubernetes replaces its staging modules with folders of its own tree. The
# published module lacks these folders, so each becomes the published module of the same release.
kubernetes_program() {
  local minor=${VERSION#v1.} package=k8s.io/component-base/version
  main_module k8s.io/kubernetes -e "s|(k8s.io/[a-z-]+) => ./staging/.*|\1 => \1 v0${VERSION#v1}|" &&
    go_program "k8s.io/kubernetes/cmd/$PEER" -X "$package.gitVersion=$VERSION" \
      -X "$package.gitMajor=1" -X "$package.gitMinor=${minor%%.*}"
}

helm_program() {
  module_program helm.sh/helm/v4 ./cmd/helm -X "helm.sh/helm/v4/internal/version.version=$VERSION"
}

# A receiver of the PROXY header, from tests/peers/go_proxyproto; remove the cached one after a change there.
go_proxyproto() {
  cp "$HERE/../tests/peers/go_proxyproto/main.go" . && main_module github.com/pires/go-proxyproto && go_program .
}

# A relay in Go, to compare ours with. Its version is a hash of its source, which tests/bench/relay/peers.py also
# computes.
RELAY_SOURCE=$HERE/../tests/bench/relay/go
RELAY_VERSION=v$(cat "$RELAY_SOURCE/go.mod" "$RELAY_SOURCE/main.go" | sha256sum | cut -c1-12)

go_relay() {
  cd "$RELAY_SOURCE" && go_program .
}

# MetalLB's own manifest, as users apply it.
metallb_manifests() {
  local source
  source=$(module_path go.universe.tf/metallb Dir) && [ -n "$source" ] && mkdir "$GOBIN/$PEER" &&
    install -m 644 "$source/config/manifests/metallb-native.yaml" "$GOBIN/$PEER/native.yaml"
}
