{{/* Custom workloads. Inline ones share a ConfigMap, whose name holds a hash of its content. */}}

{{- define "devbench.workload.inline" -}}
{{- range $name, $own := .Values.customWorkloads }}
{{- with $own.inline }}
{{ $name }}.py: {{ . | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "devbench.workload.inline.name" -}}
{{ include "devbench.fullname" . }}-workloads-{{ include "devbench.workload.inline" . | sha256sum | trunc 8 }}
{{- end -}}

{{/* Volumes of a pool's custom workloads: that of the inline ones, and one for each other one, by its place in the
pool's list, because a volume's name allows less than a workload's. Arguments: root, pool. */}}
{{- define "devbench.workload.volumes" -}}
{{- $root := .root -}}
{{- $inline := false -}}
{{- range $place, $name := .pool.workloads }}
{{- with index $root.Values.customWorkloads $name }}
{{- if .inline }}
{{- $inline = true }}
{{- else }}
- name: workload-{{ $place }}
  configMap:
    name: {{ .configMap.name }}
    items:
      - {key: {{ default (printf "%s.py" $name) .configMap.key | quote }}, path: {{ $name }}.py}
{{- end }}
{{- end }}
{{- end }}
{{- if $inline }}
- name: workloads
  configMap:
    name: {{ include "devbench.workload.inline.name" $root }}
{{- end }}
{{- end -}}

{{/* Mounts of these volumes. Arguments: root, pool. */}}
{{- define "devbench.workload.mounts" -}}
{{- range $place, $name := .pool.workloads }}
{{- with index $.root.Values.customWorkloads $name }}
- name: {{ empty .inline | ternary (printf "workload-%d" $place) "workloads" }}
  mountPath: /workloads/{{ $name }}.py
  subPath: {{ $name }}.py
  readOnly: true
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
