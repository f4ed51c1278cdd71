{{/* The value `namespaces`: Roles in these in place of the ClusterRoles of dnsproxy, with the same rules. */}}

{{- define "switchback.values.namespaces" -}}
  {{- $objects := .objects }}
  {{- if .values.namespaces }}
    {{- $found := dict }}
    {{- include "switchback.kustomize.find" (dict "objects" $objects "target" (dict "kind" "ClusterRole|ClusterRoleBinding" "name" "switchback-dnsproxy(-gateway-api|-source-.*)?") "found" $found) }}
    {{- $rules := list }}
    {{- range $found.list }}
      {{- range .rules }}
        {{- /* What is of no namespace cannot be in a Role; the ConfigMaps with upstreams have their own. */ -}}
        {{- $resources := without .resources "ingressclasses" "namespaces" }}
        {{- if and $resources (not .resourceNames) }}
          {{- $rules = append $rules (dict "apiGroups" .apiGroups "resources" $resources "verbs" .verbs) }}
        {{- end }}
      {{- end }}
    {{- end }}
    {{- $kept := list }}
    {{- range $objects.list }}{{ if not (has . $found.list) }}{{ $kept = append $kept . }}{{ end }}{{ end }}
    {{- $api := "rbac.authorization.k8s.io" }}
    {{- $account := dict "kind" "ServiceAccount" "name" "dnsproxy" "namespace" "switchback" }}
    {{- range .values.namespaces }}
      {{- $metadata := dict "name" "switchback-dnsproxy" "namespace" . "labels" (dict "app.kubernetes.io/part-of" "switchback") }}
      {{- $kept = append $kept (dict "apiVersion" (printf "%s/v1" $api) "kind" "Role" "metadata" $metadata "rules" $rules) }}
      {{- $role := dict "apiGroup" $api "kind" "Role" "name" "switchback-dnsproxy" }}
      {{- $kept = append $kept (dict "apiVersion" (printf "%s/v1" $api) "kind" "RoleBinding" "metadata" (deepCopy $metadata) "roleRef" $role "subjects" (list $account)) }}
    {{- end }}
    {{- $_ := set $objects "list" $kept }}
    {{- include "switchback.values.variable" (dict "objects" $objects "map" "dnsproxy-settings" "name" "DNSPROXY_NAMESPACE" "value" (join " " .values.namespaces)) }}
  {{- end }}
{{- end }}
