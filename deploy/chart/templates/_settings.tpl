{{/* The values `settings` and `dns`: ConfigMaps with a program's variables, and the rights that the DNS's own names take. */}}

{{- define "switchback.values.settings" -}}
  {{- $scope := . }}
  {{- range $program, $variables := .values.settings }}
    {{- if $variables }}
      {{- $map := printf "%s-settings" $program }}
      {{- if and (eq $program "node-hosts") (has "node-hosts" $scope.enabled) }}
        {{- $metadata := dict "name" $map "namespace" "switchback-nodes" }}
        {{- $object := dict "apiVersion" "v1" "kind" "ConfigMap" "metadata" $metadata "data" dict }}
        {{- $_ := set $scope.objects "list" (append $scope.objects.list $object) }}
      {{- end }}
      {{- $found := dict }}
      {{- include "switchback.kustomize.find" (dict "objects" $scope.objects "target" (dict "kind" "ConfigMap" "name" $map) "found" $found) }}
      {{- if not $found.list }}
        {{- fail (printf "settings.%s: nothing reads it; switch on components.%s" $program $program) }}
      {{- end }}
      {{- range $found.list }}
        {{- $data := .data }}
        {{- range $name, $value := $variables }}
          {{- if not (kindIs "invalid" $value) }}
          {{- /* A number of YAML is a float64 here, which would print as 1e+06. */ -}}
          {{- $_ := set $data $name (kindIs "string" $value | ternary $value (toJson $value)) }}
          {{- end }}
        {{- end }}
      {{- end }}
    {{- end }}
  {{- end }}
  {{- if has "node-hosts" .enabled }}
    {{- include "switchback.values.zones" . }}
  {{- end }}
{{- end }}

{{- /* As the component's `replacements`: without zones nothing is installed. */ -}}
{{- define "switchback.values.zones" -}}
  {{- $zones := get (index .values.settings "node-hosts") "DNSPROXY_ZONE" }}
  {{- if not $zones }}
    {{- fail "settings.node-hosts.DNSPROXY_ZONE: state the zones whose names nodes take, such as registry.example.org" }}
  {{- end }}
  {{- $found := dict }}
  {{- include "switchback.kustomize.find" (dict "objects" .objects "target" (dict "kind" "DaemonSet" "name" "node-hosts") "found" $found) }}
  {{- range $found.list }}
    {{- $annotations := merge (dict "switchback.dev/zones" $zones) (default dict .metadata.annotations) }}
    {{- $_ := set .metadata "annotations" $annotations }}
  {{- end }}
{{- end }}

{{- define "switchback.values.dns" -}}
  {{- $scope := . }}
  {{- with .values.dns.service }}
    {{- if not (has "operate" $scope.enabled) }}{{ fail "dns.service: only operate asks for it; switch on components.operate" }}{{ end }}
    {{- include "switchback.values.right" (dict "objects" $scope.objects "role" "switchback-operate" "resource" "services" "verb" "get" "name" .) }}
    {{- include "switchback.values.variable" (dict "objects" $scope.objects "map" "operate-settings" "name" "DNSPROXY_DNS_SERVICE" "value" (printf "kube-system/%s" .)) }}
  {{- end }}
  {{- range .values.dns.configMaps }}
    {{- include "switchback.values.right" (dict "objects" $scope.objects "role" "switchback-operate" "resource" "configmaps" "verb" "get" "name" .) }}
    {{- include "switchback.values.right" (dict "objects" $scope.objects "role" "switchback-operate-writing" "resource" "configmaps" "verb" "patch" "name" .) }}
    {{- include "switchback.values.right" (dict "objects" $scope.objects "role" "switchback-dnsproxy-upstreams" "resource" "configmaps" "verb" "list" "name" .) }}
  {{- end }}
  {{- if .values.dns.configMaps }}
    {{- $found := dict }}
    {{- include "switchback.kustomize.find" (dict "objects" .objects "target" (dict "kind" "ConfigMap" "name" "dnsproxy-settings") "found" $found) }}
    {{- $names := list }}
    {{- range .values.dns.configMaps }}{{ $names = append $names (printf "kube-system/%s" .) }}{{ end }}
    {{- range $found.list }}
      {{- $_ := set .data "DNSPROXY_UPSTREAM_CONFIGMAP" (printf "%s %s" (join " " $names) .data.DNSPROXY_UPSTREAM_CONFIGMAP) }}
    {{- end }}
  {{- end }}
  {{- if .values.dns.publicAddresses }}
    {{- /* Beside what settings.dnsproxy trusts, which is written after this. */ -}}
    {{- $own := default dict .values.settings.dnsproxy }}
    {{- $trusted := prepend .values.dns.publicAddresses (default "" $own.DNSPROXY_TRUST) | compact }}
    {{- $_ := set .values.settings "dnsproxy" (set $own "DNSPROXY_TRUST" (join " " $trusted)) }}
  {{- end }}
{{- end }}

{{- /* switchback.values.right: the first rule of `.role` with `.resource` and `.verb` names `.name` too. */ -}}
{{- define "switchback.values.right" -}}
  {{- $found := dict }}
  {{- $scope := . }}
  {{- include "switchback.kustomize.find" (dict "objects" .objects "target" (dict "kind" "Role" "name" .role) "found" $found) }}
  {{- range $found.list }}
    {{- $done := false }}
    {{- range .rules }}
      {{- if and (not $done) (has $scope.resource .resources) (has $scope.verb .verbs) .resourceNames }}
        {{- $_ := set . "resourceNames" (append .resourceNames $scope.name) }}
        {{- $done = true }}
      {{- end }}
    {{- end }}
  {{- end }}
{{- end }}

{{- define "switchback.values.variable" -}}
  {{- $found := dict }}
  {{- $scope := . }}
  {{- include "switchback.kustomize.find" (dict "objects" .objects "target" (dict "kind" "ConfigMap" "name" .map) "found" $found) }}
  {{- range $found.list }}
    {{- $_ := set .data $scope.name $scope.value }}
  {{- end }}
{{- end }}
