{{/* The values `networkPolicies` and `controllerPolicy`. */}}

{{- define "switchback.values.networkPolicies" -}}
  {{- $scope := . }}
  {{- if .values.networkPolicies.apiServerPorts }}
    {{- $ports := list }}
    {{- range .values.networkPolicies.apiServerPorts }}{{ $ports = append $ports (dict "port" . "protocol" "TCP") }}{{ end }}
    {{- include "switchback.network.allow" (dict "objects" .objects "name" "dnsproxy|dnsproxy-primary|publisher|ip-mode-watch" "direction" "egress" "rule" (dict "ports" $ports)) }}
  {{- end }}
  {{- range .values.networkPolicies.upstreams }}
    {{- $ports := list (dict "port" .port "protocol" "UDP") (dict "port" .port "protocol" "TCP") }}
    {{- $rule := dict "ports" $ports "to" (list (dict "ipBlock" (dict "cidr" .cidr))) }}
    {{- include "switchback.network.allow" (dict "objects" $scope.objects "name" "dnsproxy|dnsproxy-primary" "direction" "egress" "rule" $rule) }}
  {{- end }}
  {{- if .values.networkPolicies.scrapers }}
    {{- $found := dict }}
    {{- include "switchback.kustomize.find" (dict "objects" .objects "target" (dict "kind" "NetworkPolicy" "name" "metrics") "found" $found) }}
    {{- if not $found.list }}{{ fail "networkPolicies.scrapers: nothing is scraped; switch on components.monitoring" }}{{ end }}
    {{- range $found.list }}
      {{- $rule := first .spec.ingress }}
      {{- range $scope.values.networkPolicies.scrapers }}
        {{- $_ := set $rule "from" (append $rule.from (dict "ipBlock" (dict "cidr" .))) }}
      {{- end }}
    {{- end }}
  {{- end }}
{{- end }}

{{- define "switchback.network.allow" -}}
  {{- $scope := . }}
  {{- $found := dict }}
  {{- include "switchback.kustomize.find" (dict "objects" .objects "target" (dict "kind" "NetworkPolicy" "name" .name) "found" $found) }}
  {{- range $found.list }}
    {{- $_ := set .spec $scope.direction (append (get .spec $scope.direction) $scope.rule) }}
  {{- end }}
{{- end }}

{{- define "switchback.values.controllerPolicy" -}}
  {{- if .values.controllerPolicy.podNetworks }}
    {{- include "switchback.kustomize.load" (dict "objects" .objects "files" .files "folder" "manifests/controller-policy") }}
    {{- $found := dict }}
    {{- include "switchback.kustomize.find" (dict "objects" .objects "target" (dict "kind" "NetworkPolicy" "name" "headers-from-the-relay") "found" $found) }}
    {{- $policy := first $found.list }}
    {{- $_ := set $policy.metadata "namespace" .values.controllerPolicy.namespace }}
    {{- with .values.controllerPolicy.podLabels }}{{ $_ := set $policy.spec.podSelector "matchLabels" . }}{{ end }}
    {{- $rule := first $policy.spec.ingress }}
    {{- $from := initial $rule.from }}
    {{- range $everywhere := list "0.0.0.0/0" "::/0" }}
      {{- $networks := list }}
      {{- range $.values.controllerPolicy.podNetworks }}
        {{- if eq (contains ":" .) (contains ":" $everywhere) }}{{ $networks = append $networks . }}{{ end }}
      {{- end }}
      {{- if $networks }}
        {{- $from = append $from (dict "ipBlock" (dict "cidr" $everywhere "except" $networks)) }}
      {{- end }}
    {{- end }}
    {{- $_ := set $rule "from" $from }}
    {{- include "switchback.network.ports" (dict "policy" $policy "ports" .values.controllerPolicy.ports) }}
  {{- end }}
{{- end }}

{{- /* switchback.network.ports: the first rule is for `.ports`, the second for all others. */ -}}
{{- define "switchback.network.ports" -}}
  {{- $restricted := list }}
  {{- $others := list }}
  {{- $next := 1 }}
  {{- $sorted := list }}
  {{- range .ports }}{{ $sorted = append $sorted (printf "%05d" (int .)) }}{{ end }}
  {{- range sortAlpha $sorted | uniq }}
    {{- $port := trimPrefix "0000" . | trimPrefix "000" | trimPrefix "00" | trimPrefix "0" | int }}
    {{- $restricted = append $restricted (dict "port" $port "protocol" "TCP") }}
    {{- if gt $port $next }}
      {{- $others = append $others (dict "port" $next "endPort" (sub $port 1) "protocol" "TCP") }}
    {{- end }}
    {{- $next = add1 $port | int }}
  {{- end }}
  {{- if le $next 65535 }}{{ $others = append $others (dict "port" $next "endPort" 65535 "protocol" "TCP") }}{{ end }}
  {{- $_ := set (first .policy.spec.ingress) "ports" $restricted }}
  {{- $_ := set (last .policy.spec.ingress) "ports" (append $others (dict "protocol" "UDP")) }}
{{- end }}
