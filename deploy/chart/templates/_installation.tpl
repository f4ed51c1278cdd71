{{/*
The installation: the kustomizations of manifests/ that the values choose, and then the values, which change their objects.
The order of the components is the one in which they go together; an owner of a kustomization lists them in it.
*/}}

{{- define "switchback.components" -}}
[operate, gateway-api, source-service, source-traefik, source-openshift, source-contour, source-istio,
 source-external-dns, source-dnsendpoint, print, stub-domains, strict, hpa, node-local, rpz, publishing, external-dns,
 node-hosts, node-hosts-control-planes, node-hosts-user-namespace, wholeip, wholeip-metrics, wholeip-strict, doctor, doctor-strict,
 ip-mode, ip-mode-watch, monitoring]
{{- end }}

{{- define "switchback.needs" -}}
print: [operate]
external-dns: [publishing]
node-hosts: [publishing]
node-hosts-control-planes: [publishing, node-hosts]
node-hosts-user-namespace: [publishing, node-hosts]
wholeip-strict: [wholeip]
wholeip-metrics: [wholeip]
doctor-strict: [doctor]
{{- end }}

{{- /* switchback.enabled: puts the names of the components, in their order, into `.found.list`. */ -}}
{{- define "switchback.enabled" -}}
  {{- $wanted := list }}
  {{- $needs := fromYaml (include "switchback.needs" .) }}
  {{- range $name, $on := .Values.components }}
    {{- if $on }}{{ $wanted = concat $wanted (list $name) (default list (index $needs $name)) }}{{ end }}
  {{- end }}
  {{- $found := list }}
  {{- range fromYamlArray (include "switchback.components" .) }}
    {{- if has . $wanted }}{{ $found = append $found . }}{{ end }}
  {{- end }}
  {{- $_ := set .found "list" $found }}
{{- end }}

{{- /*
switchback.installation: puts every object into `.objects.list`. `.root`: the scope of a template; `.more`: components beside
those of the values, for a hook.
*/ -}}
{{- define "switchback.installation" -}}
  {{- $objects := .objects }}
  {{- $root := .root }}
  {{- $enabled := dict }}
  {{- include "switchback.enabled" (dict "Values" $root.Values "found" $enabled) }}
  {{- include "switchback.kustomize.load" (dict "objects" $objects "files" $root.Files "folder" "manifests/base") }}
  {{- range concat $enabled.list (default list .more) }}
    {{- include "switchback.kustomize.load" (dict "objects" $objects "files" $root.Files "folder" (printf "manifests/components/%s" .)) }}
  {{- end }}
  {{- $scope := dict "objects" $objects "values" (deepCopy $root.Values) "chart" $root.Chart "files" $root.Files "enabled" $enabled.list }}
  {{- range list "controllerPolicy" "namespaces" "dns" "settings" "ipMode" "ipModeWatch" "networkPolicies" "pods" "image" "patches" "restart" }}
    {{- include (printf "switchback.values.%s" .) $scope }}
  {{- end }}
  {{- /* Helm has made the namespace of the release before its objects; `helm template` makes none. */ -}}
  {{- $kept := list }}
  {{- $made := ternary $root.Release.Namespace "" (ne (include "switchback.hooks.wanted" $root) "") }}
  {{- range $objects.list }}
    {{- if not (and (eq .kind "Namespace") (eq .metadata.name $made)) }}{{ $kept = append $kept . }}{{ end }}
  {{- end }}
  {{- $_ := set $objects "list" $kept }}
{{- end }}
