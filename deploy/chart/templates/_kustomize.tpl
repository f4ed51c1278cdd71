{{/*
Reads a kustomization of manifests/ as kubectl does: its resources, its ConfigMaps, and its patches. The folders there are
those that `kubectl apply -k` reads, so no manifest is written twice.

The law: `.objects` is a dict with one key, `list`, the objects read so far; each definition changes it and prints nothing.
A template can only print text, but it may change a dict that it is given.
*/}}

{{- /* switchback.kustomize.load: adds the kustomization in `.folder` to `.objects`. `.files`: the chart's files. */ -}}
{{- define "switchback.kustomize.load" -}}
  {{- $text := .files.Get (printf "%s/kustomization.yaml" .folder) }}
  {{- if not $text }}
    {{- fail (printf "%s is not in the chart: its source in a git repository has links to the manifests, which this program did not follow. Take the packaged chart, or make one with `helm package`" .folder) }}
  {{- end }}
  {{- $kustomization := fromYaml $text }}
  {{- $scope := merge (dict "kustomization" $kustomization) . }}
  {{- range $kustomization.resources }}
    {{- include "switchback.kustomize.resource" (merge (dict "path" (printf "%s/%s" $scope.folder .)) $scope) }}
  {{- end }}
  {{- range $kustomization.configMapGenerator }}
    {{- include "switchback.kustomize.configmap" (merge (dict "generator" .) $scope) }}
  {{- end }}
  {{- range $kustomization.patches }}
    {{- include "switchback.kustomize.patch" (merge (dict "patch" .) $scope) }}
  {{- end }}
{{- end }}

{{- define "switchback.kustomize.resource" -}}
  {{- $scope := . }}
  {{- range regexSplit "(?m)^---\\s*$" (.files.Get .path) -1 }}
    {{- with fromYaml . }}
      {{- if .Error }}{{ fail (printf "%s: %s" $scope.path .Error) }}{{ end }}
      {{- include "switchback.kustomize.add" (merge (dict "object" .) $scope) }}
    {{- end }}
  {{- end }}
{{- end }}

{{- define "switchback.kustomize.configmap" -}}
  {{- $data := dict }}
  {{- range .generator.literals }}
    {{- $pair := splitn "=" 2 . }}
    {{- $_ := set $data $pair._0 $pair._1 }}
  {{- end }}
  {{- range .generator.files }}
    {{- $_ := set $data . ($.files.Get (printf "%s/%s" $.folder .)) }}
  {{- end }}
  {{- if eq (default "create" .generator.behavior) "merge" }}
    {{- $target := dict "kind" "ConfigMap" "name" .generator.name }}
    {{- $found := dict }}
    {{- include "switchback.kustomize.find" (dict "objects" .objects "target" $target "found" $found) }}
    {{- range $found.list }}
      {{- $_ := set . "data" (mergeOverwrite .data $data) }}
    {{- end }}
  {{- else }}
    {{- $metadata := dict "name" .generator.name }}
    {{- with .generator.namespace }}{{ $_ := set $metadata "namespace" . }}{{ end }}
    {{- with .generator.options }}{{ with .labels }}{{ $_ := set $metadata "labels" . }}{{ end }}{{ end }}
    {{- $object := dict "apiVersion" "v1" "kind" "ConfigMap" "metadata" $metadata "data" $data }}
    {{- include "switchback.kustomize.add" (merge (dict "object" $object) .) }}
  {{- end }}
{{- end }}

{{- /* switchback.kustomize.add: adds `.object`, with the labels and the namespace that its kustomization gives to all. */ -}}
{{- define "switchback.kustomize.add" -}}
  {{- $object := .object }}
  {{- range .kustomization.labels }}
    {{- $_ := set $object.metadata "labels" (merge (default dict $object.metadata.labels) .pairs) }}
  {{- end }}
  {{- range .kustomization.transformers }}
    {{- $namespace := (fromYaml .).metadata.namespace }}
    {{- if not (has $object.kind (list "Namespace" "ClusterRole" "ClusterRoleBinding")) }}
      {{- $_ := set $object.metadata "namespace" (default $namespace $object.metadata.namespace) }}
    {{- end }}
    {{- range $object.subjects }}
      {{- $_ := set . "namespace" (default $namespace .namespace) }}
    {{- end }}
  {{- end }}
  {{- $_ := set .objects "list" (append .objects.list $object) }}
{{- end }}

{{- /* switchback.kustomize.find: puts the objects that `.target` (kind, name: expressions; namespace) selects into `.found.list`. */ -}}
{{- define "switchback.kustomize.find" -}}
  {{- $found := list }}
  {{- $target := .target }}
  {{- range .objects.list }}
    {{- $same := and (regexMatch (printf "^(%s)$" (default ".*" $target.kind)) .kind) (regexMatch (printf "^(%s)$" (default ".*" $target.name)) .metadata.name) }}
    {{- if and $same (or (not $target.namespace) (eq $target.namespace (default "" .metadata.namespace))) }}
      {{- $found = append $found . }}
    {{- end }}
  {{- end }}
  {{- $_ := set .found "list" $found }}
{{- end }}

{{- /* switchback.kustomize.patch: a patch is a list of operations, or a part of an object; without a target it names its object. */ -}}
{{- define "switchback.kustomize.patch" -}}
  {{- $target := .patch.target }}
  {{- $found := dict }}
  {{- if regexMatch "(?m)^- " .patch.patch }}
    {{- include "switchback.kustomize.find" (dict "objects" .objects "target" $target "found" $found) }}
    {{- $operations := fromYamlArray .patch.patch }}
    {{- range $object := $found.list }}
      {{- range $operations }}
        {{- include "switchback.patch.apply" (dict "object" $object "operation" .) }}
      {{- end }}
    {{- end }}
  {{- else }}
    {{- $part := fromYaml .patch.patch }}
    {{- if not $target }}
      {{- $target = dict "kind" $part.kind "name" $part.metadata.name "namespace" $part.metadata.namespace }}
    {{- end }}
    {{- include "switchback.kustomize.find" (dict "objects" .objects "target" $target "found" $found) }}
    {{- if and (not .patch.target) (not $found.list) }}
      {{- fail (printf "components: %s needs another component, the one with the %s %s" (base .folder) $part.kind $part.metadata.name) }}
    {{- end }}
    {{- if eq (default "" (index $part "$patch")) "delete" }}
      {{- $kept := list }}
      {{- range .objects.list }}{{ if not (has . $found.list) }}{{ $kept = append $kept . }}{{ end }}{{ end }}
      {{- $_ := set .objects "list" $kept }}
    {{- else }}
      {{- range $found.list }}
        {{- include "switchback.patch.merge" (dict "object" . "part" (omit $part "metadata")) }}
      {{- end }}
    {{- end }}
  {{- end }}
{{- end }}
