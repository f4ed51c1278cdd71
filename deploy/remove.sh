#!/bin/sh
# Removes Switchback from a cluster: first the stanza from its DNS, then everything else. Needs kubectl alone.
#
#   deploy/remove.sh KUSTOMIZATION      the folder or address that `kubectl apply -k` was given
#
# Run it again at any time: what is gone is gone. Nothing else is deleted while the DNS still asks dnsproxy.
# KUBECTL  the command to run, where it is not `kubectl` alone (KUBECTL='kubectl --context production')
set -eu

kubectl=${KUBECTL:-kubectl}
seconds=${SECONDS_TO_WAIT:-960}
[ $# = 1 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
job=dnsproxy-uninstall-$(date +%s)

say() { printf 'remove: %s\n' "$*" >&2; }
here() { $kubectl --namespace switchback "$@"; }

# The status of the Job: Complete, Failed, or nothing yet.
ended() {
  here get job "$job" -o 'jsonpath={range .status.conditions[?(@.status=="True")]}{.type}{" "}{end}' 2>/dev/null || true
}

# Nobody may put back what is taken out, a pod that is just at it included.
here delete deployment,job dnsproxy-install --ignore-not-found --cascade=foreground
if [ -n "$(here get cronjob dnsproxy-uninstall --ignore-not-found -o name)" ]; then
  here create job "$job" --from=cronjob/dnsproxy-uninstall
  waited=0
  while :; do
    case "$(ended)" in
      *Complete*) break ;;
      *Failed*)
        here logs "job/$job" >&2 || true
        say 'the stanza could not be taken out; nothing was deleted'
        exit 1
        ;;
    esac
    [ "$waited" -lt "$seconds" ] || { say "the stanza is not out after $seconds s; nothing was deleted"; exit 1; }
    sleep 2
    waited=$((waited + 2))
  done
  here logs "job/$job"
else
  say 'no installer here: if a stanza was put in otherwise, take it out first (dnsproxy uninstall); it does no harm meanwhile'
fi
$kubectl delete -k "$1" --ignore-not-found
