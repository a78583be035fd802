{{/* Custom workloads. The content of each inline one is a ConfigMap, whose name holds its hash: a Job that exists still
finds its own when another one changes. */}}

{{/* Name of the ConfigMap of an inline workload. Arguments: root, name, inline. */}}
{{- define "devbench.workload.inline.name" -}}
{{ include "devbench.fullname" .root }}-workload-{{ list .name .inline | toJson | sha256sum | trunc 8 }}
{{- end -}}

{{/* Volumes of a pool's custom workloads, named by their place in the pool's list, because a volume's name allows less
than a workload's. Arguments: root, pool. */}}
{{- define "devbench.workload.volumes" -}}
{{- range $place, $name := .pool.workloads }}
{{- with index $.root.Values.customWorkloads $name }}
- name: workload-{{ $place }}
  configMap:
    {{- if .inline }}
    name: {{ include "devbench.workload.inline.name" (dict "root" $.root "name" $name "inline" .inline) }}
    {{- else }}
    name: {{ .configMap.name | quote }}
    items:
      - {key: {{ default (printf "%s.py" $name) .configMap.key | quote }}, path: {{ $name }}.py}
    {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Mounts of these volumes. Arguments: root, pool. */}}
{{- define "devbench.workload.mounts" -}}
{{- range $place, $name := .pool.workloads }}
{{- if hasKey $.root.Values.customWorkloads $name }}
- {name: workload-{{ $place }}, mountPath: /workloads/{{ $name }}.py, subPath: {{ $name }}.py, readOnly: true}
{{- end }}
{{- end }}
{{- end -}}

{{/* What a pool's custom workloads contain, as far as the chart knows it. Arguments: root, pool. */}}
{{- define "devbench.workload.content" -}}
{{- range $name := .pool.workloads }}
{{- with index $.root.Values.customWorkloads $name }}
{{ $name }}: {{ toJson . }}
{{- end }}
{{- end }}
{{- end -}}
