#!/bin/sh
# Removes Switchback from a cluster: first the stanza from its DNS, then wholeip's rules from its nodes, then everything
# else. Needs kubectl alone.
#
#   deploy/remove.sh KUSTOMIZATION      the folder or address that `kubectl apply -k` was given
#
# Run it again at any time: what is gone is gone. Nothing else is deleted while the DNS still asks dnsproxy, or while a
# node has rules. What is not in the kustomization stays.
# KUBECTL          the command to run, where it is not `kubectl` alone (KUBECTL='kubectl --context production')
# SECONDS_TO_WAIT  for the stanza, and for the nodes (960)
set -eu

kubectl=${KUBECTL:-kubectl}
seconds=${SECONDS_TO_WAIT:-960}
[ $# = 1 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }

say() { printf 'remove: %s\n' "$*" >&2; }
give_up() { say "$*; nothing else was deleted"; exit 1; }
here() { $kubectl --namespace switchback "$@"; }
there() { $kubectl --namespace switchback-wholeip "$@"; }

# Lines with something in them.
count() { printf '%s\n' "$1" | grep -c . || true; }

# Whether the kustomization has an object of this name.
has() { printf '%s\n' "$objects" | grep -q "^  name: $1\$"; }

# Until a command prints something, at most that many seconds; what it printed.
await() {
  waited=0
  until found=$("$@") && [ -n "$found" ]; do
    [ "$waited" -lt "$seconds" ] || return 1
    sleep 2
    waited=$((waited + 2))
  done
  printf '%s\n' "$found"
}

# The status of the Job that takes the stanza out: Complete, Failed, or nothing yet.
stanza_ended() {
  here get job "$job" -o 'jsonpath={range .status.conditions[?(@.status=="True")]}{.type}{" "}{end}' 2>/dev/null |
    grep -o -w -e Complete -e Failed || true
}

take_out_the_stanza() {
  # Nobody may put back what is taken out, a pod that is just at it included.
  here delete deployment,job dnsproxy-install --ignore-not-found --cascade=foreground
  if [ -z "$(here get cronjob dnsproxy-uninstall --ignore-not-found -o name)" ]; then
    say 'no installer here: if a stanza was put in otherwise, take it out first (dnsproxy uninstall); it does no harm meanwhile'
    return
  fi
  job=dnsproxy-uninstall-$(date +%s)
  here create job "$job" --from=cronjob/dnsproxy-uninstall
  outcome=$(await stanza_ended) || give_up "the stanza is not out after $seconds s"
  here logs "job/$job" || true
  [ "$outcome" = Complete ] || give_up 'the stanza could not be taken out'
}

# A line for each node that still has its rules: its name, and the word Failed where that will stay so. Fails where it
# cannot be known: no line must mean no rules.
nodes_left() {
  states=$(there get jobs --selector "$rules_jobs" -o 'jsonpath={range .items[*]}{.spec.template.spec.nodeName}{range .status.conditions[?(@.status=="True")]}{" "}{.type}{end}{"\n"}{end}') || return 1
  [ "$(count "$states")" = "$(count "$nodes")" ] || return 1
  printf '%s\n' "$states" | grep -v -w Complete || true
}

all_nodes_ended() {
  left=$(nodes_left) || return 1
  [ "$(count "$left")" != "$(count "$(printf '%s\n' "$left" | grep -w Failed)")" ] || echo yes
}

take_out_the_rules() {
  rules_jobs=app.kubernetes.io/name=wholeip-uninstall
  if [ -z "$(there get cronjob wholeip-uninstall --ignore-not-found -o name)" ]; then
    say 'no wholeip-uninstall here: a node on which wholeip left rules loses them by `nft delete table inet switchback_wholeip`'
    return
  fi
  # An agent that is still there would put them back.
  there delete daemonset wholeip --ignore-not-found --cascade=foreground --timeout="${seconds}s" || {
    there get pods --selector app.kubernetes.io/name=wholeip -o wide >&2 || true
    give_up 'these agents do not end; a node that will not come back goes by `kubectl delete node`'
  }
  there delete jobs --selector "$rules_jobs" --ignore-not-found --cascade=foreground
  template=$(there create job wholeip-uninstall --from=cronjob/wholeip-uninstall --dry-run=client -o yaml)
  nodes=$($kubectl get nodes --selector kubernetes.io/os=linux -o 'jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}')
  number=0
  for node in $nodes; do
    number=$((number + 1))
    printf '%s\n' "$template" |
      sed -e "s/^  name: wholeip-uninstall\$/&-$number/" -e "s/nodeName: each\.node\$/nodeName: $node/"
    echo ---
  done | there create -f -
  await all_nodes_ended >/dev/null || true
  there logs --selector "$rules_jobs" --tail=-1 --prefix || true
  left=$(nodes_left) || give_up 'the Jobs that take out the rules cannot be seen'
  [ -z "$left" ] || {
    printf '%s\n' "$left" >&2
    give_up 'these nodes still have the rules; one that will not come back goes by `kubectl delete node`'
  }
}

# What cannot be rendered would not be deleted either.
objects=$($kubectl kustomize "$1")
if has dnsproxy; then take_out_the_stanza; fi
if has wholeip; then take_out_the_rules; fi
$kubectl delete -k "$1" --ignore-not-found
