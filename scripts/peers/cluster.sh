# shellcheck shell=bash
# The programs of a Kubernetes node, for `make cluster-test`.

# CNI plugins are not on the PATH.
CLUSTER_DEBIAN=(
  containerd:containerd containerd:ctr runc:runc containernetworking-plugins:/usr/lib/cni/bridge musl-tools:musl-gcc
  iptables:iptables-save
  # A Git server over SSH
  openssh-server:sshd openssh-client:ssh git:git
)
CLUSTER_KUBERNETES=(kubelet kube-proxy kube-controller-manager kube-scheduler)

cluster_peers() {
  local name
  for name in "${CLUSTER_KUBERNETES[@]}"; do
    peer "$name" "$KUBERNETES_VERSION" kubernetes_program
  done
}
