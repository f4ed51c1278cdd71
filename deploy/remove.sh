#!/bin/sh
# Removes Switchback from a cluster: operate ends, then the stanza leaves the cluster's DNS, then wholeip's rules the nodes,
# then all objects go. Removes an installation with an installer (Deployment or Job dnsproxy-install) too. Needs only kubectl.
#
#   deploy/remove.sh KUSTOMIZATION      the folder or address that you gave to `kubectl apply -k`
#
# You may run it any number of times. It deletes no other object while the DNS still asks dnsproxy, or while a node still
# has rules, or if it cannot find out. It deletes only objects of the kustomization, under the names that deploy/ gives them.
# KUBECTL          the kubectl command, if it needs arguments (KUBECTL='kubectl --context production')
# SECONDS_TO_WAIT  seconds to wait for each step: operate's end, the stanza, the agents' end, the nodes (960)
set -eu

kubectl=${KUBECTL:-kubectl}
seconds=${SECONDS_TO_WAIT:-960}
[ $# = 1 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }

# The objects that show what there is to remove before all else.
stanza='(Deployment|DaemonSet) switchback/(dnsproxy|operate)|CronJob switchback/dnsproxy-uninstall'
rules='(DaemonSet|CronJob) switchback-wholeip/wholeip(-uninstall)?'

say() { printf 'remove: %s\n' "$*" >&2; }
give_up() { say "$*; nothing else was deleted"; exit 1; }
here() { $kubectl --namespace switchback "$@"; }
there() { $kubectl --namespace switchback-wholeip "$@"; }

# The number of non-empty lines.
count() { printf '%s\n' "$1" | grep -c . || true; }

# Manifests as lines with `KIND NAMESPACE/NAME`.
list() {
  awk 'function emit() { if (kind) print kind, namespace "/" name; kind = namespace = name = "" }
    /^---/ { emit() }
    /^[a-zA-Z]/ { inside = /^metadata:/ }
    /^kind: / { kind = $2 }
    inside && /^  namespace: / { namespace = $2 }
    inside && /^  name: / { name = $2 }
    END { emit() }'
}

# Whether the kustomization has an object that matches this.
has() { printf '%s\n' "$objects" | grep -q -x -E -e "$1"; }

# The names of the ConfigMaps with a stanza or stub domains of ours. A migration drops the markers, so dnsproxy's address counts too.
marked() {
  ours=$(here get services --field-selector metadata.name=dnsproxy -o 'jsonpath={.items[*].spec.clusterIPs[*]}') || return 1
  ours=$(printf '%s\n' "${ours:-none}" | sed -e 's/[.]/\\./g' -e 's/ /|/g')
  maps=$($kubectl --namespace kube-system get configmaps -o 'jsonpath={range .items[*]}{.metadata.name}{" "}{.metadata.annotations.switchback\.dev/stub-domains}{.data}{"\n"}{end}') || return 1
  printf '%s\n' "$maps" | sed -n -E -e 's/^([^ ]+) ([^{]|.*# *BEGIN switchback( |:)|.*forward [^ ]+ ('"$ours"')[^0-9a-f.:]).*/\1/p'
}

# Repeat a command until it prints something, for at most $seconds; print its output.
await() {
  waited=0
  until found=$("$@") && [ -n "$found" ]; do
    [ "$waited" -lt "$seconds" ] || return 1
    sleep 2
    waited=$((waited + 2))
  done
  printf '%s\n' "$found"
}

# Fail if a deleted object is there again: it would put back what was removed. `stay_away here|there KINDS NAME`
stay_away() {
  again=$("$1" get "$2" --field-selector "metadata.name=$3" -o name) || give_up "it is unknown whether $3 is there again"
  [ -z "$again" ] || give_up "another program has created $again again; suspend it (Argo CD, Flux) and run this again"
}

# The status of the Job that removes the stanza: Complete, Failed, or nothing yet.
stanza_ended() {
  here get job "$job" -o 'jsonpath={range .status.conditions[?(@.status=="True")]}{.type}{" "}{end}' 2>/dev/null |
    grep -o -w -e Complete -e Failed || true
}

# Each of them would restore the stanza.
keepers='operate dnsproxy-install'

take_out_the_stanza() {
  # This also waits for running pods to end.
  here delete deployment,job $keepers --ignore-not-found --cascade=foreground --timeout="${seconds}s" || {
    here get pods --selector 'app.kubernetes.io/name in (operate, installer)' -o wide >&2 || true
    give_up 'operate does not end, and would restore the stanza; remove a lost node with `kubectl delete node`'
  }
  uninstaller=$(here get cronjob dnsproxy-uninstall --ignore-not-found -o name) || give_up 'it is unknown whether dnsproxy-uninstall is here'
  if [ -z "$uninstaller" ]; then
    if has 'CronJob switchback/dnsproxy-uninstall'; then
      left=$(marked) || give_up 'no dnsproxy-uninstall is here, and it is unknown whether the stanza is still in the DNS'
      [ -z "$left" ] || give_up "no dnsproxy-uninstall is here, but the stanza is still in: $left. Apply the kustomization again and run this again, or run \`dnsproxy uninstall\`"
    fi
    say 'no dnsproxy-uninstall here: if you installed the stanza in another way, remove it first (dnsproxy uninstall); it does no harm meanwhile'
    return
  fi
  job=dnsproxy-uninstall-$(date +%s)
  here create job "$job" --from=cronjob/dnsproxy-uninstall || give_up 'the Job that removes the stanza cannot be created'
  outcome=$(await stanza_ended) || give_up "the stanza is not removed after $seconds s"
  here logs "job/$job" || true
  for keeper in $keepers; do stay_away here deployment,job "$keeper"; done
  [ "$outcome" = Complete ] || give_up 'the stanza could not be removed'
}

# What operate wrote, and what only an installation with an installer has outside of the namespace switchback.
take_out_the_rest() {
  here delete services --selector app.kubernetes.io/managed-by=switchback-operate --ignore-not-found
  here delete leases switchback-operate --ignore-not-found
  $kubectl --namespace kube-system delete roles,rolebindings switchback-installer switchback-installer-watch switchback-installer-writing --ignore-not-found
  $kubectl delete clusterroles,clusterrolebindings switchback-installer --ignore-not-found
}

# A line for each node that still has its rules: its name, and the word Failed if its Job has failed. Fails if the state
# is unknown: no line must mean no rules.
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
  uninstaller=$(there get cronjob wholeip-uninstall --ignore-not-found -o name) || give_up 'it is unknown whether wholeip-uninstall is here'
  if [ -z "$uninstaller" ]; then
    say 'no wholeip-uninstall here: if wholeip left rules on a node, run `nft delete table inet switchback_wholeip` there'
    return
  fi
  # A running agent would put the rules back.
  there delete daemonset wholeip --ignore-not-found --cascade=foreground --timeout="${seconds}s" || {
    there get pods --selector app.kubernetes.io/name=wholeip -o wide >&2 || true
    give_up 'these agents do not end; remove a lost node with `kubectl delete node`'
  }
  there delete jobs --selector "$rules_jobs" --ignore-not-found --cascade=foreground --timeout="${seconds}s" ||
    give_up 'the Jobs of an earlier removal do not end; remove a lost node with `kubectl delete node`'
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
  left=$(nodes_left) || give_up 'the state of the Jobs that remove the rules is unknown'
  [ -z "$left" ] || {
    printf '%s\n' "$left" >&2
    give_up 'these nodes still have the rules; remove a lost node with `kubectl delete node`'
  }
  stay_away there daemonset wholeip
}

# A kustomization that does not render cannot be deleted either: fail before any change.
manifests=$($kubectl kustomize "$1")
objects=$(printf '%s\n' "$manifests" | list)
renamed=$(printf '%s\n' "$objects" | grep -E -e '^CronJob .*(dnsproxy|wholeip)-uninstall' | grep -v -x -E -e "$stanza|$rules" || true)
[ -z "$renamed" ] || give_up "this script cannot follow a kustomization that renames objects or moves them to another namespace ($renamed): run \`dnsproxy uninstall\`, and \`wholeip uninstall\` on each node, and then \`kubectl delete -k\`"
if has "$stanza"; then take_out_the_stanza; fi
if has "$rules"; then take_out_the_rules; fi
if has "$stanza"; then take_out_the_rest; fi
$kubectl delete -k "$1" --ignore-not-found
