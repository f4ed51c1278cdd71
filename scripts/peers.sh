#!/usr/bin/env bash
# Fetches and builds the real programs that the tests and benchmarks compare Switchback with ("peers"):
#   Debian packages (dig, dnsperf, nginx, haproxy, etcd ...), when run as root on a Debian system;
#   programs from published Go modules, built into a cache folder outside this tree: CoreDNS, kube-apiserver, kubectl,
#   MetalLB's controller, external-dns ...;
#   custom resource definitions from the same modules;
#   a small Debian with Python, as a base image for machines without access to a registry;
#   newer Pythons, each in a folder with its libraries.
# The cache is keyed by version, and each peer is built once. You may run this any number of times: it keeps existing
# peers. The lists of peers and their versions: scripts/peers/*.sh.
#
#   scripts/peers.sh            the peers of `make test`
#   scripts/peers.sh --cluster  the additional programs for `make cluster-test`: those of a node, and a controller
#   scripts/peers.sh --cilium   the additional programs for its `--cni cilium` and `--cni cilium-alone`; ten minutes on two processors
#   scripts/peers.sh --world    the additional programs for `make world-test`: those of --cilium, other controllers and versions
#   scripts/peers.sh --release  the programs that `make release` runs
#   scripts/peers.sh --list     list the existing and the missing peers of all groups; installs nothing
#
# SWITCHBACK_PEERS  the cache folder (default: ~/.cache/switchback/peers)
# shellcheck source-path=SCRIPTDIR
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)

source "$HERE/peers/cache.sh"
source "$HERE/peers/modules.sh"
source "$HERE/peers/debian.sh"
source "$HERE/peers/pythons.sh"
source "$HERE/peers/basic.sh"
source "$HERE/peers/cluster.sh"
source "$HERE/peers/cilium.sh"
source "$HERE/peers/stage.sh"
source "$HERE/peers/world.sh"
source "$HERE/peers/release.sh"

list() {
  ACTION=list
  list_packages "${DEBIAN[@]}" "${CLUSTER_DEBIAN[@]}" "${CILIUM_DEBIAN[@]}"
  basic_peers
  cluster_peers
  cilium_peers
  stage_peers
  world_peers
}

case "${1:-}" in
  --list) list ;;
  '')
    install_packages "${DEBIAN[@]}"
    basic_peers
    list
    ;;
  --cluster)
    install_packages "${DEBIAN[@]}" "${CLUSTER_DEBIAN[@]}"
    cluster_peers
    stage_peers
    ;;
  --cilium)
    install_packages "${DEBIAN[@]}" "${CILIUM_DEBIAN[@]}"
    cilium_peers
    ;;
  --world)
    install_packages "${DEBIAN[@]}" "${CILIUM_DEBIAN[@]}"
    cilium_peers
    world_peers
    ;;
  --release)
    install_packages "${RELEASE_DEBIAN[@]}"
    release_peers
    ;;
  *) say "unknown argument $1 (only --cluster, --cilium, --world, --release, --list)"; exit 2 ;;
esac
