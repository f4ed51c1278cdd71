{{/*
Hooks: objects that Helm makes for the time of an uninstallation or a test, and deletes afterwards.

The law: none is in the output of `helm template`, of which `kubectl apply` would run each hook at once, as an ordinary object.
A hook is rendered only while Helm talks to an API server, where it finds the Namespace `kube-system`. `--dry-run=server` does that
too, so each program that a hook runs also refuses a Job that another program made (`--hook`).
*/}}

{{- define "switchback.hooks.wanted" -}}
  {{- if lookup "v1" "Namespace" "" "kube-system" }}yes{{ end }}
{{- end }}

{{- /* switchback.hooks.annotations: `.hook`, its `.weight`, and whether it `.stays` until the next one. Deleted when all have succeeded. */ -}}
{{- define "switchback.hooks.annotations" -}}
helm.sh/hook: {{ .hook }}
helm.sh/hook-weight: {{ .weight | quote }}
helm.sh/hook-delete-policy: before-hook-creation{{ if not .stays }},hook-succeeded{{ end }}
{{- if .prints }}
helm.sh/hook-output-log-policy: hook-succeeded,hook-failed
{{- end }}
{{- end }}

{{- /* switchback.hooks.owner: the release that an object of the cluster belongs to, or nothing. */ -}}
{{- define "switchback.hooks.owner" -}}
  {{- with .metadata }}{{ with .annotations }}{{ get . "meta.helm.sh/release-name" }}{{ end }}{{ end }}
{{- end }}

{{- /* switchback.hooks.job: the Job of the CronJob `.name`, of `.objects`, as a hook with the arguments `.args`. */ -}}
{{- define "switchback.hooks.job" -}}
  {{- $found := dict }}
  {{- include "switchback.kustomize.find" (dict "objects" .objects "target" (dict "kind" "CronJob" "name" .name) "found" $found) }}
  {{- $cronjob := first $found.list }}
  {{- $spec := deepCopy $cronjob.spec.jobTemplate.spec }}
  {{- $pod := $spec.template.spec }}
  {{- $_ := set (first $pod.containers) "args" .args }}
  {{- $_ := unset $pod "nodeName" }}
  {{- if .asks }}
    {{- /* It only asks the API server, for longer than a Job of one node, and on a node that takes pods. */ -}}
    {{- $_ := set $spec "activeDeadlineSeconds" 1800 }}
    {{- $_ := set $pod "tolerations" (list (dict "key" "CriticalAddonsOnly" "operator" "Exists")) }}
    {{- $_ := set $pod "nodeSelector" (dict "kubernetes.io/os" "linux") }}
    {{- $_ := set $pod "securityContext" (dict "runAsNonRoot" true "runAsUser" 65532 "runAsGroup" 65532 "seccompProfile" (dict "type" "RuntimeDefault")) }}
    {{- $_ := set (first $pod.containers).securityContext "capabilities" (dict "drop" (list "ALL")) }}
  {{- end }}
  {{- with .account }}{{ $_ := set $pod "serviceAccountName" . }}{{ $_ := set $pod "automountServiceAccountToken" true }}{{ end }}
  {{- $labels := deepCopy $cronjob.metadata.labels }}
  {{- with .label }}
    {{- $_ := set $labels "app.kubernetes.io/name" . }}
    {{- $_ := set $spec.template.metadata "labels" $labels }}
  {{- end }}
  {{- $annotations := fromYaml (include "switchback.hooks.annotations" .) }}
  {{- $metadata := dict "name" .as "namespace" $cronjob.metadata.namespace "labels" $labels "annotations" $annotations }}
  {{- toYaml (dict "apiVersion" "batch/v1" "kind" "Job" "metadata" $metadata "spec" $spec) }}
{{- end }}
