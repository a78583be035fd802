{{/* The values, made complete. Every file calls devbench.init before it reads them. */}}

{{/* Remove null values, and set what is missing to the default of facts.json. Helm removes a value that a user sets to
null, and --reuse-values keeps the values of an older version of the chart. */}}
{{- define "devbench.init" -}}
{{- if not (hasKey . "DevbenchFacts") -}}
{{- $facts := .Files.Get "facts.json" | fromJson -}}
{{- include "devbench.compact" .Values -}}
{{- include "devbench.complete" (dict "values" .Values "defaults" $facts.defaults) -}}
{{- include "devbench.check" (dict "root" . "facts" $facts) -}}
{{- $_ := set . "DevbenchFacts" $facts -}}
{{- end -}}
{{- end -}}

{{- define "devbench.compact" -}}
{{- $map := . -}}
{{- range $key := keys $map -}}
{{- $value := index $map $key -}}
{{- if kindIs "invalid" $value -}}
{{- $_ := unset $map $key -}}
{{- else if kindIs "map" $value -}}
{{- include "devbench.compact" $value -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "devbench.complete" -}}
{{- $values := .values -}}
{{- range $key, $default := .defaults -}}
{{- if not (hasKey $values $key) -}}
{{- $_ := set $values $key (kindIs "map" $default | ternary (deepCopy (dict "value" $default)) (dict "value" $default)).value -}}
{{- else if and (kindIs "map" $default) (kindIs "map" (index $values $key)) -}}
{{- include "devbench.complete" (dict "values" (index $values $key) "defaults" $default) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The values that differ from their defaults, as JSON. Arguments: values, defaults. */}}
{{- define "devbench.changed" -}}
{{- $changed := dict -}}
{{- range $key, $value := .values -}}
{{- $default := index $.defaults $key -}}
{{- if and (kindIs "map" $value) $default -}}
{{- $value = include "devbench.changed" (dict "values" $value "defaults" $default) | fromJson -}}
{{- $default = dict -}}
{{- end -}}
{{- if ne (toJson $value) (toJson $default) }}{{ $_ := set $changed $key $value }}{{ end -}}
{{- end -}}
{{- toJson $changed -}}
{{- end -}}

{{/* Refuse what would fail only later: on a node, or half-way through the installation. Arguments: root, facts. */}}
{{- define "devbench.check" -}}
{{- $values := .root.Values -}}
{{- $known := concat .facts.workloads (keys $values.customWorkloads) -}}
{{- $named := dict "workloads" $values.workloads -}}
{{- range $name, $pool := $values.pools -}}
{{- with $pool.workloads }}{{ $_ := set $named (printf "pools.%s.workloads" $name) . }}{{ end -}}
{{- end -}}
{{- range $monitor := list "podMonitor" "serviceMonitor" -}}
{{- with index $values.metrics $monitor -}}
{{- if gt (int .timeoutSeconds) (int .intervalSeconds) -}}
{{- fail (printf "metrics.%s.timeoutSeconds is %d, but it must be at most intervalSeconds, which is %d" $monitor (int .timeoutSeconds) (int .intervalSeconds)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $place, $workloads := $named -}}
{{- range $workloads -}}
{{- if not (has . $known) -}}
{{- fail (printf "%s names '%s', which is neither a built-in workload (%s) nor one of customWorkloads" $place . (join ", " $.facts.workloads)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A setting's value for an environment variable: lists with commas, pairs as name=value. */}}
{{- define "devbench.written" -}}
{{- if kindIs "slice" . -}}
{{- join "," . -}}
{{- else if kindIs "map" . -}}
{{- $pairs := list -}}
{{- range $name, $value := . }}{{ $pairs = append $pairs (printf "%s=%s" $name (include "devbench.written" $value)) }}{{ end -}}
{{- join "," $pairs -}}
{{- else if and (kindIs "float64" .) (eq (float64 (int64 .)) .) -}}
{{- int64 . -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{/* Settings as environment variables. Arguments: prefix, settings. */}}
{{- define "devbench.settings.env" -}}
{{- range $name, $value := .settings }}
- name: {{ $.prefix }}{{ upper $name }}
  value: {{ kindIs "bool" $value | ternary (eq (toString $value) "true" | ternary "on" "off") (include "devbench.written" $value) | quote }}
{{- end }}
{{- end -}}
