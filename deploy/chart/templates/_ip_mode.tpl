{{/* The values `ipMode` and `ipModeWatch`. */}}

{{- define "switchback.values.ipMode" -}}
  {{- $classes := .values.ipMode.loadBalancerClasses }}
  {{- if $classes }}
    {{- $found := dict }}
    {{- include "switchback.kustomize.find" (dict "objects" .objects "target" (dict "kind" "MutatingAdmissionPolicy" "name" "switchback-ip-mode") "found" $found) }}
    {{- if not $found.list }}{{ fail "ipMode.loadBalancerClasses: only the policy reads it; switch on components.ip-mode" }}{{ end }}
    {{- range $found.list }}
      {{- $_ := set (first .spec.variables) "expression" (toJson $classes) }}
    {{- end }}
  {{- end }}
{{- end }}

{{- /* The named Services take the place of the one that the component names: in the arguments, and in rights by name. */ -}}
{{- define "switchback.values.ipModeWatch" -}}
  {{- if has "ip-mode-watch" .enabled }}
    {{- $objects := .objects }}
    {{- $services := .values.ipModeWatch.services }}
    {{- $found := dict }}
    {{- include "switchback.kustomize.find" (dict "objects" $objects "target" (dict "kind" "Deployment" "name" "ip-mode-watch") "found" $found) }}
    {{- range $found.list }}
      {{- $container := first .spec.template.spec.containers }}
      {{- $arguments := slice $container.args 0 (sub (len $container.args) 2 | int) }}
      {{- range $services }}{{ $arguments = concat $arguments (list "--service" .) }}{{ end }}
      {{- $_ := set $container "args" $arguments }}
    {{- end }}
    {{- $names := dict }}
    {{- range $services }}
      {{- $parts := splitList "/" . }}
      {{- $_ := set $names (first $parts) (append (default list (get $names (first $parts))) (last $parts)) }}
    {{- end }}
    {{- include "switchback.kustomize.find" (dict "objects" $objects "target" (dict "kind" "Role|RoleBinding" "name" "switchback-ip-mode-watch") "found" $found) }}
    {{- $kept := list }}
    {{- range $objects.list }}{{ if not (has . $found.list) }}{{ $kept = append $kept . }}{{ end }}{{ end }}
    {{- range $namespace, $services := $names }}
      {{- range $found.list }}
        {{- $object := deepCopy . }}
        {{- $_ := set $object.metadata "namespace" $namespace }}
        {{- range $object.rules }}
          {{- if .resourceNames }}{{ $_ := set . "resourceNames" $services }}{{ end }}
        {{- end }}
        {{- $kept = append $kept $object }}
      {{- end }}
    {{- end }}
    {{- $_ := set $objects "list" $kept }}
  {{- end }}
{{- end }}
