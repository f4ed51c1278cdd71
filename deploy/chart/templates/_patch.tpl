{{/*
Changes of one object, which is a dict: operations of a JSON patch (RFC 6902: add, replace, remove, test), and a merge (RFC
7386: null removes, a list replaces a list). Both print nothing.
*/}}

{{- /* switchback.patch.apply: `.operation` (op, path, value) on `.object`. */ -}}
{{- define "switchback.patch.apply" -}}
  {{- $operation := .operation }}
  {{- $keys := list }}
  {{- range splitList "/" (trimPrefix "/" $operation.path) }}
    {{- $keys = append $keys (. | replace "~1" "/" | replace "~0" "~") }}
  {{- end }}
  {{- $place := printf "%s %s: %s %s" .object.kind .object.metadata.name $operation.op $operation.path }}
  {{- if eq $operation.op "test" }}{{ fail $place }}{{ end }}
  {{- /* Each object gets a copy: a later change of one must not change another, nor the values. */ -}}
  {{- $new := $operation.value }}
  {{- if or (kindIs "map" $new) (kindIs "slice" $new) }}{{ $new = deepCopy $new }}{{ end }}
  {{- $last := last $keys }}
  {{- $parent := .object }}
  {{- /* A list cannot be changed in place: the map that has it gets another one. */ -}}
  {{- $map := .object }}
  {{- $key := "" }}
  {{- range initial $keys }}
    {{- if kindIs "slice" $parent }}
      {{- if not (and (regexMatch "^[0-9]+$" .) (lt (int .) (len $parent))) }}{{ fail (printf "%s: there is no %s" $place .) }}{{ end }}
      {{- $parent = index $parent (int .) }}
    {{- else }}
      {{- if not (and (kindIs "map" $parent) (hasKey $parent .)) }}{{ fail (printf "%s: there is no %s" $place .) }}{{ end }}
      {{- $map = $parent }}
      {{- $key = . }}
      {{- $parent = index $parent . }}
    {{- end }}
  {{- end }}
  {{- if kindIs "slice" $parent }}
    {{- $index := ternary (len $parent) (int $last) (eq $last "-") }}
    {{- if not (regexMatch "^(-|[0-9]+)$" $last) }}{{ fail (printf "%s: %s is no index of a list" $place $last) }}{{ end }}
    {{- if ge $index (add (len $parent) (ternary 1 0 (eq $operation.op "add")) | int) }}{{ fail (printf "%s: there is no %s" $place $last) }}{{ end }}
    {{- /* slice gives no list for an empty one. */ -}}
    {{- $before := default list (slice $parent 0 $index) }}
    {{- $after := default list (slice $parent (ternary $index (add1 $index | int) (eq $operation.op "add"))) }}
    {{- $value := ternary list (list $new) (eq $operation.op "remove") }}
    {{- $_ := set $map $key (default list (concat $before $value $after)) }}
  {{- else }}
    {{- if not (kindIs "map" $parent) }}{{ fail (printf "%s: there is no place for %s" $place $last) }}{{ end }}
    {{- if and (ne $operation.op "add") (not (hasKey $parent $last)) }}{{ fail (printf "%s: there is no %s" $place $last) }}{{ end }}
    {{- if eq $operation.op "remove" }}
      {{- $_ := unset $parent $last }}
    {{- else }}
      {{- $_ := set $parent $last $new }}
    {{- end }}
  {{- end }}
{{- end }}

{{- /* switchback.patch.merge: `.part` into `.object`. */ -}}
{{- define "switchback.patch.merge" -}}
  {{- $object := .object }}
  {{- range $key, $value := .part }}
    {{- if kindIs "invalid" $value }}
      {{- $_ := unset $object $key }}
    {{- else if and (kindIs "map" $value) (kindIs "map" (index $object $key)) }}
      {{- include "switchback.patch.merge" (dict "object" (index $object $key) "part" $value) }}
    {{- else }}
      {{- $_ := set $object $key $value }}
    {{- end }}
  {{- end }}
{{- end }}
