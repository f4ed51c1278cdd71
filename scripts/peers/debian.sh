# shellcheck shell=bash
# Debian packages, and a small Debian as a base image.

# package:program, or package:file; the program or file shows whether the package is installed. The tests take a program
# of these packages from the record that keep_programs writes, and from nowhere else.
DEBIAN=(
  util-linux:unshare util-linux:nsenter util-linux:setpriv mount:mount libc-bin:getent bash:bash gcc:cc openssl:openssl
  bind9-dnsutils:dig dnsperf:dnsperf nginx-light:nginx haproxy:haproxy etcd-server:etcd curl:curl
  libnginx-mod-stream:/usr/lib/nginx/modules/ngx_stream_module.so
  nsd:nsd unbound:unbound dnsmasq-base:dnsmasq wrk:wrk iproute2:ip strace:strace
  buildah:buildah debootstrap:debootstrap patchelf:patchelf bind9:named bind9:tsig-keygen prometheus:promtool chromium:chromium
  nftables:nft conntrack:conntrack iperf3:iperf3 patch:patch binutils:readelf skopeo:skopeo docker-registry:docker-registry
  zsh:zsh fish:fish pipx:pipx
  knot:knotd knot-dnsutils:kdig knot-resolver:kresd lua-cqueues:/usr/share/lua/5.1/cqueues/notify.lua pdns-recursor:pdns_recursor
)
DEBIAN_VERSION=v12
DEBIAN_SUITE=bookworm

# missing_packages ROW...
missing_packages() {
  local row
  for row in "$@"; do
    have "${row#*:}" || printf '%s\n' "${row%%:*}"
  done
}

# list_packages ROW...
list_packages() {
  local row found
  for row in "$@"; do
    have "${row#*:}" && found=found || found="missing (package ${row%%:*})"
    printf '%-23s %s\n' "${row##*[:/]}" "$found"
  done
}

# install_packages ROW...
install_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$@" | sort -u)
  [ "${#missing[@]}" -eq 0 ] || add_packages "${missing[@]}"
  keep_programs "$@"
}

# add_packages PACKAGE...
add_packages() {
  local missing=("$@") policy=/usr/sbin/policy-rc.d
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

# keep_programs ROW...: record where each program is, so that the tests take these and no other: a computer without
# `make peers` has none of them, whatever is on its PATH.
keep_programs() {
  local row
  mkdir -p "$CACHE/system"
  for row in "$@"; do
    row=${row#*:}
    [[ $row == /* ]] || ! have "$row" || ln -sfn "$(PATH="$PATH:/usr/sbin:/sbin" type -P "$row")" "$CACHE/system/$row"
  done
}

# debian_base: two root folders as tar archives, for `buildah add`; the one for arm64 cannot run here
debian_base() {
  root_peer debian-base make_debian_base
  root_peer debian-base-arm64 make_debian_base_arm64
}

# root_peer NAME COMMAND
root_peer() {
  if [ "$ACTION" = list ]; then
    list_peer "$1" "$DEBIAN_VERSION"
  elif [ ! -e "$CACHE/$1-$DEBIAN_VERSION/$1/root.tar" ]; then
    make_root "$1" "$2" "$CACHE/$1-$DEBIAN_VERSION/$1" || say "not made: $1; the tests that need it will skip"
  fi
}

# make_root NAME COMMAND TARGET: as root, because debootstrap creates device nodes and sets owners
make_root() {
  local target=$3 work
  if ! have debootstrap || [ "$(id -u)" != 0 ]; then
    say "not made: $1 (needs root and debootstrap); the tests that need it will skip"
    return 0
  fi
  say "making $1 of Debian $DEBIAN_SUITE (once; a minute)"
  work=$(mktemp -d)
  if ! "$2" "$work/root" >&2; then
    rm -rf "$work"
    return 1
  fi
  rm -rf "$work"/root/var/cache/apt/archives/*.deb "$work"/root/var/lib/apt/lists/*
  mkdir -p "$target"
  tar --numeric-owner -C "$work/root" -cf "$target/root.tar.new" .
  mv "$target/root.tar.new" "$target/root.tar"
  rm -rf "$work"
}

make_debian_base() { debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates "$DEBIAN_SUITE" "$1"; }

# debootstrap's first stage downloads all packages and unpacks the required ones. The others are unpacked here; none is
# configured, because that would run programs of arm64.
make_debian_base_arm64() {
  local root=$1 package
  debootstrap --foreign --arch=arm64 --variant=minbase --include=python3,ca-certificates "$DEBIAN_SUITE" "$root" || return
  for package in "$root"/var/cache/apt/archives/*.deb; do
    # /lib and /sbin are links to the folders in /usr, and have to stay links.
    dpkg-deb --fsys-tarfile "$package" | tar -C "$root" -x --keep-directory-symlink || return
  done
  # What the configuration of ca-certificates would write
  cat "$root"/usr/share/ca-certificates/mozilla/*.crt >"$root/etc/ssl/certs/ca-certificates.crt"
  rm -rf "$root/debootstrap"
}
