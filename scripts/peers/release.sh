# shellcheck shell=bash
# The programs that `make release` runs; the tests have them from other groups.

RELEASE_DEBIAN=(buildah:buildah skopeo:skopeo)

release_peers() {
  peer kubectl "$KUBERNETES_VERSION" kubernetes_program
  peer helm "$HELM_VERSION" helm_program
}
