#!/usr/bin/env bash
# Fetches and builds the real programs that the tests and benchmarks compare Switchback with ("peers"):
#   Debian packages (dig, dnsperf, nginx, haproxy, etcd ...), when run as root on a Debian system;
#   CoreDNS (the newest version, and the oldest supported version that still builds), kube-apiserver and kubectl, built
#   as Go modules into a cache folder outside this tree;
#   older versions of kube-apiserver, and MetalLB's controller, built likewise, with its custom resource definitions;
#   external-dns, built as a Go module, and its custom resource definition;
#   the custom resource definitions of the Gateway API and of the prometheus-operator, from their Go modules;
#   a small Debian with Python, as a base image for machines without access to a registry.
# The cache is keyed by version, and each peer is built once. You may run this any number of times: it keeps existing
# peers.
#
#   scripts/peers.sh            everything
#   scripts/peers.sh --cluster  the additional programs for `make cluster-test`: those of a Kubernetes node
#   scripts/peers.sh --cilium   the additional programs for its `--cni cilium` and `--cni cilium-alone`; ten minutes on two processors
#   scripts/peers.sh --list     list the existing and the missing peers; installs nothing
#
# SWITCHBACK_PEERS  the cache folder (default: ~/.cache/switchback/peers)
set -euo pipefail

COREDNS_VERSION=v1.14.7
# The first that builds becomes `coredns-old`: v1.9.4 is the first that accepts several `forward` in one server block.
COREDNS_OLD_VERSIONS=(v1.9.4 v1.10.0 v1.10.1 v1.11.4)
KUBERNETES_VERSION=v1.36.3
# Their API servers alone: what older clusters answer to `dnsproxy ip-mode`.
KUBERNETES_OLDER_VERSIONS=(v1.34.4 v1.35.4)
METALLB_VERSION=v0.15.2
GATEWAY_API_VERSION=v1.6.3
# The last version that Go 1.26 builds. The build takes four minutes, because it includes every provider.
EXTERNAL_DNS_VERSION=v0.21.0
GO_PROXYPROTO_VERSION=v0.15.0
PROMETHEUS_OPERATOR_VERSION=v0.85.0
KUBE_SCORE_VERSION=v1.20.0
DEBIAN_VERSION=v12
DEBIAN_SUITE=bookworm
HERE=$(cd "$(dirname "$0")" && pwd)
CACHE=${SWITCHBACK_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/switchback/peers}

# package:program, or package:file; the program or file shows whether the package is installed
DEBIAN=(
  bind9-dnsutils:dig dnsperf:dnsperf nginx-light:nginx haproxy:haproxy etcd-server:etcd curl:curl
  libnginx-mod-stream:/usr/lib/nginx/modules/ngx_stream_module.so
  nsd:nsd unbound:unbound dnsmasq-base:dnsmasq wrk:wrk iproute2:ip strace:strace
  buildah:buildah debootstrap:debootstrap bind9:named prometheus:promtool chromium:chromium
  nftables:nft conntrack:conntrack iperf3:iperf3 patch:patch
)
# CNI plugins are not on the PATH.
CLUSTER_DEBIAN=(
  containerd:containerd runc:runc containernetworking-plugins:/usr/lib/cni/bridge musl-tools:musl-gcc
  iptables:iptables-save
)
# From 1.17.0 on, except for 1.18.0, it honours ipMode.
CILIUM_VERSION=v1.17.8
# The agent compiles its programs for the kernel when it starts.
CILIUM_DEBIAN=(clang:clang llvm:llc bpftool:bpftool)
CLUSTER_KUBERNETES=(kubelet kube-proxy kube-controller-manager kube-scheduler)

say() { printf 'peers: %s\n' "$*" >&2; }
have() { [[ $1 == /* && -e $1 ]] || PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null; }

missing_packages() {
  local row
  for row in "${DEBIAN[@]}"; do
    have "${row#*:}" || printf '%s\n' "${row%%:*}"
  done
}

install_packages() {
  local missing policy=/usr/sbin/policy-rc.d
  mapfile -t missing < <(missing_packages)
  [ "${#missing[@]}" -gt 0 ] || return 0
  if ! have apt-get || [ "$(id -u)" != 0 ]; then
    say "not installed: ${missing[*]} (needs root and apt-get); the tests that need them will skip"
    return 0
  fi
  say "installing ${missing[*]}"
  # The tests start these servers themselves; the Debian packages must not start them as services.
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    # shellcheck disable=SC2064  # the path must expand now
    trap "rm -f '$policy'" EXIT
  fi
  apt-get update -q >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}" >&2
}

# build NAME VERSION COMMAND...: runs COMMAND in a fresh folder and keeps its bin/NAME, a program or a folder
build() {
  local name=$1 version=$2 target work
  shift 2
  target=$CACHE/$name-$version
  [ ! -x "$target/$name" ] || return 0
  have go || { say "not built: $name (needs Go); the tests that need it will skip"; return 0; }
  say "building $name $version (once; a program takes minutes)"
  work=$(mktemp -d)
  mkdir -p "$work/bin" "$target"
  # An explicit check, because `set -e` has no effect if the caller tests the status.
  if ! (cd "$work" && export GOBIN="$work/bin" CGO_ENABLED=0 GOFLAGS=-mod=mod && "$@" "$version") >&2; then
    rm -rf "$work"
    rmdir "$target"
    return 1
  fi
  mv "$work/bin/$name" "$target/$name.new"
  mv "$target/$name.new" "$target/$name"
  rm -rf "$work"
}

# build_first NAME COMMAND VERSION...: builds the first of these versions that builds, once
build_first() {
  local name=$1 command=$2 version
  shift 2
  for version in "$@"; do
    [ ! -x "$CACHE/$name-$version/$name" ] || return 0
  done
  for version in "$@"; do
    build "$name" "$version" "$command" && return 0
    say "$name $version does not build here"
  done
  return 1
}

build_coredns() {
  GOFLAGS='' go install -trimpath -ldflags '-s -w' "github.com/coredns/coredns@$1"
}

# Its golang.org/x/net links to a runtime symbol that Go 1.23 and later hide, unless the linker's check is off.
build_coredns_old() {
  GOFLAGS='' go install -trimpath -ldflags '-s -w -checklinkname=0' "github.com/coredns/coredns@$1" &&
    mv "$GOBIN/coredns" "$GOBIN/coredns-old"
}

# k8s.io/kubernetes replaces its staging modules with folders of its own tree, which the module does not contain. So
# each becomes the published module of the same release.
build_kubernetes() {
  local program=$1 version=$2 minor=${2#v1.} gomod
  minor=${minor%%.*}
  gomod=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
  {
    printf 'module switchback.dev/peers\n\ngo %s\n\nrequire k8s.io/kubernetes %s\n\n' \
      "$(sed -n 's/^go //p' "$gomod")" "$version"
    sed -n "s|^[[:space:]]*\(k8s.io/[a-z-]*\) => ./staging/.*|replace \1 => \1 v0${version#v1}|p" "$gomod"
  } >go.mod
  local package=k8s.io/component-base/version
  go build -trimpath -o "$GOBIN/$program" -ldflags "-s -w -X $package.gitVersion=$version \
    -X $package.gitMajor=1 -X $package.gitMinor=$minor" "k8s.io/kubernetes/cmd/$program"
}

build_metallb() {
  local package=$1 version=$2 gomod
  gomod=$(go mod download -json "go.universe.tf/metallb@$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
  {
    printf 'module switchback.dev/peers\n\ngo %s\n\nrequire go.universe.tf/metallb %s\n\n' \
      "$(sed -n 's/^go //p' "$gomod")" "$version"
    sed -n 's/^\t\([^ ]* => .*\)/replace \1/p; s/^replace \(.* => .*\)/replace \1/p' "$gomod"
  } >go.mod
  go build -trimpath -ldflags '-s -w' -o "$GOBIN/metallb-controller" "go.universe.tf/metallb/$package"
}

fetch_metallb_crds() {
  local folder
  folder=$(go mod download -json "go.universe.tf/metallb@$1" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  cp -r "$folder/config/crd/bases" "$GOBIN/metallb-crds" && chmod -R u+w "$GOBIN/metallb-crds"
}

build_external_dns() {
  GOFLAGS='' go install -trimpath -ldflags '-s -w' "sigs.k8s.io/external-dns@$1"
}

fetch_dnsendpoint() {
  local folder
  folder=$(go mod download -json "sigs.k8s.io/external-dns@$1" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  mkdir "$GOBIN/dnsendpoint"
  cp "$folder"/config/crd/standard/*.yaml "$GOBIN/dnsendpoint/"
  chmod -R u+w "$GOBIN/dnsendpoint"
}

fetch_gateway_api() {
  local folder
  folder=$(go mod download -json "sigs.k8s.io/gateway-api@$1" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  mkdir "$GOBIN/gateway-api"
  cp -r "$folder/config/crd/standard" "$folder/config/crd/experimental" "$GOBIN/gateway-api/"
  # A module's files are read-only, and the cache must be removable.
  chmod -R u+w "$GOBIN/gateway-api"
}

cilium_sources() {
  go mod download -json "github.com/cilium/cilium@$1" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p'
}

# Its module has replace directives, which apply only in a main module: copy them.
build_cilium() {
  local name=$1 package=$2 version=$3 sources
  sources=$(cilium_sources "$version")
  {
    printf 'module switchback.dev/peers\n\ngo %s\n\nrequire github.com/cilium/cilium %s\n\n' \
      "$(sed -n 's/^go //p' "$sources/go.mod")" "$version"
    sed -n 's/^\t\([^ ]* => .*\)/replace \1/p' "$sources/go.mod"
  } >go.mod
  go build -trimpath -ldflags '-s -w' -o "$GOBIN/$name" "github.com/cilium/cilium/$package" &&
    # A kernel without modules has neither path; tests/cluster/nodes/cilium.py lists the built-in features there instead.
    LC_ALL=C sed -i 's|/proc/modules|/run/_modules|g; s|/lib/modules|/run/modules|g' "$GOBIN/$name"
}

fetch_cilium_bpf() {
  cp -r "$(cilium_sources "$1")/bpf" "$GOBIN/cilium-bpf" && chmod -R u+w "$GOBIN/cilium-bpf"
}

fetch_cilium_crds() {
  cp -r "$(cilium_sources "$1")/pkg/k8s/apis/cilium.io/client/crds" "$GOBIN/cilium-crds" && chmod -R u+w "$GOBIN/cilium-crds"
}

build_kube_score() {
  GOFLAGS='' go install -trimpath -ldflags '-s -w' "github.com/zegl/kube-score/cmd/kube-score@$1"
}

fetch_prometheus_operator() {
  local folder
  folder=$(go mod download -json "github.com/prometheus-operator/prometheus-operator@$1" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  cp -r "$folder/example/prometheus-operator-crd" "$GOBIN/prometheus-operator"
  chmod -R u+w "$GOBIN/prometheus-operator"
}

# A root folder as a tar archive, for `buildah add`. Built here as root, because debootstrap creates device nodes and sets
# owners.
make_debian_base() {
  local target=$CACHE/debian-base-$DEBIAN_VERSION work
  [ ! -e "$target/debian-base/root.tar" ] || return 0
  if ! have debootstrap || [ "$(id -u)" != 0 ]; then
    say "not made: debian-base (needs root and debootstrap); the tests that need it will skip"
    return 0
  fi
  say "making a base of Debian $DEBIAN_SUITE (once; a minute)"
  work=$(mktemp -d)
  if ! debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates "$DEBIAN_SUITE" "$work/root" >&2; then
    rm -rf "$work"
    return 1
  fi
  rm -rf "$work"/root/var/cache/apt/archives/*.deb "$work"/root/var/lib/apt/lists/*
  mkdir -p "$target/debian-base"
  tar --numeric-owner -C "$work/root" -cf "$target/debian-base/root.tar.new" .
  mv "$target/debian-base/root.tar.new" "$target/debian-base/root.tar"
  rm -rf "$work"
}

# A receiver of the PROXY header, from tests/peers/go_proxyproto; remove the cached one after a change there.
build_go_proxyproto() {
  cp "$HERE/../tests/peers/go_proxyproto/main.go" . &&
    go mod init switchback.dev/peers &&
    go get "github.com/pires/go-proxyproto@$1" &&
    go build -trimpath -o "$GOBIN/go-proxyproto" .
}

# A relay in Go, to compare ours with. Its version is a hash of its source; tests/bench/relay/peers.py computes the same.
RELAY_SOURCE=$HERE/../tests/bench/relay/go
RELAY_VERSION=v$(cat "$RELAY_SOURCE/go.mod" "$RELAY_SOURCE/main.go" | sha256sum | cut -c1-12)

build_relay() {
  cd "$RELAY_SOURCE" && go build -trimpath -o "$GOBIN/go-relay" .
}

# The folder of the existing `coredns-old`, otherwise of the first version to try
old_coredns() {
  local version
  for version in "${COREDNS_OLD_VERSIONS[@]}"; do
    [ ! -x "$CACHE/coredns-old-$version/coredns-old" ] || { echo "coredns-old-$version"; return; }
  done
  echo "coredns-old-${COREDNS_OLD_VERSIONS[0]}"
}

list() {
  local row name
  for row in "${DEBIAN[@]}"; do
    have "${row#*:}" && printf '%-16s found\n' "${row##*[:/]}" || printf '%-16s missing (package %s)\n' "${row##*[:/]}" "${row%%:*}"
  done
  for name in "coredns-$COREDNS_VERSION" "$(old_coredns)" "kube-apiserver-$KUBERNETES_VERSION" "${KUBERNETES_OLDER_VERSIONS[@]/#/kube-apiserver-}" \
    "kubectl-$KUBERNETES_VERSION" "metallb-controller-$METALLB_VERSION" "metallb-crds-$METALLB_VERSION" \
    "gateway-api-$GATEWAY_API_VERSION" "go-proxyproto-$GO_PROXYPROTO_VERSION" \
    "debian-base-$DEBIAN_VERSION" "kube-score-$KUBE_SCORE_VERSION" "prometheus-operator-$PROMETHEUS_OPERATOR_VERSION" \
    "go-relay-$RELAY_VERSION" "external-dns-$EXTERNAL_DNS_VERSION" \
    "dnsendpoint-$EXTERNAL_DNS_VERSION"; do
    [ -x "$CACHE/$name/${name%-v*}" ] && printf '%-16s %s\n' "${name%-v*}" "$CACHE/$name" || printf '%-16s missing\n' "${name%-v*}"
  done
}

case "${1:-}" in
  --list) list ;;
  '')
    install_packages
    build coredns "$COREDNS_VERSION" build_coredns
    build_first coredns-old build_coredns_old "${COREDNS_OLD_VERSIONS[@]}" ||
      say "not built: coredns-old; the tests that need it will skip"
    build kube-apiserver "$KUBERNETES_VERSION" build_kubernetes kube-apiserver
    for version in "${KUBERNETES_OLDER_VERSIONS[@]}"; do
      build kube-apiserver "$version" build_kubernetes kube-apiserver
    done
    build kubectl "$KUBERNETES_VERSION" build_kubernetes kubectl
    build metallb-controller "$METALLB_VERSION" build_metallb controller
    build metallb-crds "$METALLB_VERSION" fetch_metallb_crds
    build gateway-api "$GATEWAY_API_VERSION" fetch_gateway_api
    build dnsendpoint "$EXTERNAL_DNS_VERSION" fetch_dnsendpoint
    build external-dns "$EXTERNAL_DNS_VERSION" build_external_dns
    build go-proxyproto "$GO_PROXYPROTO_VERSION" build_go_proxyproto ||
      say "not built: go-proxyproto; the tests that need it will skip"
    build kube-score "$KUBE_SCORE_VERSION" build_kube_score
    build prometheus-operator "$PROMETHEUS_OPERATOR_VERSION" fetch_prometheus_operator
    make_debian_base || say "not made: debian-base; the tests that need it will skip"
    build go-relay "$RELAY_VERSION" build_relay
    list
    ;;
  --cluster)
    DEBIAN+=("${CLUSTER_DEBIAN[@]}")
    install_packages
    for name in "${CLUSTER_KUBERNETES[@]}"; do
      build "$name" "$KUBERNETES_VERSION" build_kubernetes "$name"
    done
    ;;
  --cilium)
    DEBIAN+=("${CILIUM_DEBIAN[@]}")
    install_packages
    build cilium-bpf "$CILIUM_VERSION" fetch_cilium_bpf
    build cilium-crds "$CILIUM_VERSION" fetch_cilium_crds
    build cilium-cni "$CILIUM_VERSION" build_cilium cilium-cni plugins/cilium-cni
    build cilium-agent "$CILIUM_VERSION" build_cilium cilium-agent daemon
    ;;
  *) say "unknown argument $1 (only --cluster, --cilium, --list)"; exit 2 ;;
esac
