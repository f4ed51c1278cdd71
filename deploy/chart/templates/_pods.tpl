{{/* The values `pods`, `image`, `nftablesImage` and `patches`, and the restart of pods whose settings change. */}}

{{- /* switchback.pods.templates: puts a dict with each `workload` and its `template` into `.found.list`. */ -}}
{{- define "switchback.pods.templates" -}}
  {{- $found := list }}
  {{- range .objects.list }}
    {{- if has .kind (list "Deployment" "DaemonSet") }}
      {{- $found = append $found (dict "workload" . "template" .spec.template) }}
    {{- else if eq .kind "CronJob" }}
      {{- $found = append $found (dict "workload" . "template" .spec.jobTemplate.spec.template) }}
    {{- end }}
  {{- end }}
  {{- $_ := set .found "list" $found }}
{{- end }}

{{- define "switchback.values.pods" -}}
  {{- $scope := . }}
  {{- $found := dict }}
  {{- include "switchback.pods.templates" (dict "objects" .objects "found" $found) }}
  {{- range $name, $values := .values.pods }}
    {{- $changed := false }}
    {{- range $found.list }}
      {{- if and (not (kindIs "invalid" $values)) (eq .workload.metadata.name $name) }}
        {{- include "switchback.pods.change" (dict "name" $name "values" $values "workload" .workload "template" .template "enabled" $scope.enabled) }}
        {{- $changed = true }}
      {{- end }}
    {{- end }}
    {{- if and (not (kindIs "invalid" $values)) (not $changed) }}{{ fail (printf "pods.%s: the components that are on have no such workload" $name) }}{{ end }}
  {{- end }}
{{- end }}

{{- define "switchback.pods.change" -}}
  {{- $spec := .template.spec }}
  {{- $metadata := .template.metadata }}
  {{- if not (kindIs "invalid" .values.replicas) }}
    {{- if ne .workload.kind "Deployment" }}{{ fail (printf "pods.%s.replicas: a %s has no number of replicas" .name .workload.kind) }}{{ end }}
    {{- if and (has "hpa" .enabled) (not (hasKey .workload.spec "replicas")) }}
      {{- fail (printf "pods.%s.replicas: the component hpa sets it, and each upgrade would undo that" .name) }}
    {{- end }}
    {{- $_ := set .workload.spec "replicas" .values.replicas }}
  {{- end }}
  {{- if not $spec.nodeSelector }}{{ $_ := set $spec "nodeSelector" dict }}{{ end }}
  {{- include "switchback.patch.merge" (dict "object" $spec.nodeSelector "part" (default dict .values.nodeSelector)) }}
  {{- with .values.tolerations }}{{ $_ := set $spec "tolerations" (concat (default list $spec.tolerations) .) }}{{ end }}
  {{- if eq (toString .values.priorityClassName) "" }}{{ $_ := unset $spec "priorityClassName" }}{{ end }}
  {{- with .values.priorityClassName }}{{ $_ := set $spec "priorityClassName" . }}{{ end }}
  {{- with .values.labels }}{{ $_ := set $metadata "labels" (merge (default dict $metadata.labels) .) }}{{ end }}
  {{- if not $metadata.annotations }}{{ $_ := set $metadata "annotations" dict }}{{ end }}
  {{- include "switchback.patch.merge" (dict "object" $metadata.annotations "part" (default dict .values.annotations)) }}
  {{- with .values.resources }}
    {{- include "switchback.patch.merge" (dict "object" (first $spec.containers).resources "part" .) }}
  {{- end }}
{{- end }}

{{- define "switchback.values.image" -}}
  {{- $scope := . }}
  {{- $found := dict }}
  {{- include "switchback.pods.templates" (dict "objects" .objects "found" $found) }}
  {{- range $found.list }}
    {{- $image := ternary $scope.values.nftablesImage $scope.values.image (eq (default "" .workload.metadata.namespace) "switchback-wholeip") }}
    {{- range .template.spec.containers }}
      {{- $_ := set . "image" (include "switchback.image.reference" (dict "image" $image "chart" $scope.chart)) }}
      {{- $_ := set . "imagePullPolicy" $scope.values.image.pullPolicy }}
    {{- end }}
    {{- if $scope.values.image.pullSecrets }}
      {{- $secrets := list }}
      {{- range $scope.values.image.pullSecrets }}{{ $secrets = append $secrets (dict "name" .) }}{{ end }}
      {{- $_ := set .template.spec "imagePullSecrets" $secrets }}
    {{- end }}
  {{- end }}
{{- end }}

{{- define "switchback.image.reference" -}}
  {{- with .image.digest }}{{ printf "%s@%s" $.image.repository . }}
  {{- else }}{{ printf "%s:%s" .image.repository (default .chart.AppVersion .image.tag) }}{{ end }}
{{- end }}

{{- define "switchback.values.patches" -}}
  {{- $scope := . }}
  {{- range $number, $patch := .values.patches }}
    {{- $found := dict }}
    {{- include "switchback.kustomize.find" (dict "objects" $scope.objects "target" $patch.target "found" $found) }}
    {{- if not $found.list }}{{ fail (printf "patches.%d.target: no object is a %s %s" $number (default ".*" $patch.target.kind) (default ".*" $patch.target.name)) }}{{ end }}
    {{- range $object := $found.list }}
      {{- range $patch.patch }}{{ include "switchback.patch.apply" (dict "object" $object "operation" .) }}{{ end }}
    {{- end }}
  {{- end }}
{{- end }}

{{- /*
The names of the ConfigMaps are stable, so that an old pod that restarts during an upgrade still finds its own; so each pod
has a sum of its settings, and a change replaces it.
*/ -}}
{{- define "switchback.values.restart" -}}
  {{- $scope := . }}
  {{- $found := dict }}
  {{- include "switchback.pods.templates" (dict "objects" .objects "found" $found) }}
  {{- range $found.list }}
    {{- $data := list }}
    {{- $namespace := .workload.metadata.namespace }}
    {{- range (first .template.spec.containers).envFrom }}
      {{- $map := dict }}
      {{- include "switchback.kustomize.find" (dict "objects" $scope.objects "target" (dict "kind" "ConfigMap" "name" .configMapRef.name "namespace" $namespace) "found" $map) }}
      {{- range $map.list }}{{ $data = append $data .data }}{{ end }}
    {{- end }}
    {{- if and $data (ne .workload.kind "CronJob") }}
      {{- $annotations := default dict .template.metadata.annotations }}
      {{- $_ := set $annotations "switchback.dev/settings" (toJson $data | sha256sum | trunc 16) }}
      {{- $_ := set .template.metadata "annotations" $annotations }}
    {{- end }}
  {{- end }}
{{- end }}
