{{/* The pod that measures. */}}

{{/* The pod template of a run. Arguments: the scope of a run. */}}
{{- define "devbench.run.pod" -}}
{{- $root := .root -}}
{{- $pool := .pool -}}
metadata:
  {{- $labels := dict "devbench/pool" .name -}}
  {{- if .workers }}{{ $_ := set $labels "devbench/run" .run }}{{ end -}}
  {{- $annotations := dict "cluster-autoscaler.kubernetes.io/safe-to-evict" "false" "karpenter.sh/do-not-disrupt" "true" -}}
  {{- with $root.Values.metrics -}}
  {{- if and .enabled .annotations (ne (toString .podMonitor.enabled) "true") -}}
  {{- $_ := set $annotations "prometheus.io/scrape" "true" -}}
  {{- $_ = set $annotations "prometheus.io/port" (.port | int | toString) -}}
  {{- $_ = set $annotations "prometheus.io/path" "/metrics" -}}
  {{- end -}}
  {{- end -}}
  {{- include "devbench.pod.metadata" (dict "root" $root "component" "run" "options" $pool "labels" $labels "annotations" $annotations) | nindent 2 }}
spec:
  activeDeadlineSeconds: {{ int64 $pool.runSeconds }}
  restartPolicy: Never
  terminationGracePeriodSeconds: 60
  {{- if gt .workers 1 }}
  subdomain: {{ .run }}
  {{- end }}
  {{- $init := $root.Values.hub.auth.runTokens | ternary (include "devbench.run.token.container" .) "" }}
  {{- include "devbench.pod.spec" (dict "root" $root "options" $pool "init" $init) | nindent 2 }}
  {{- with $pool.runtimeClassName }}
  runtimeClassName: {{ . | quote }}
  {{- end }}
  {{- with .place.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  affinity:
    {{- include "devbench.run.affinity" . | nindent 4 }}
  {{- with $pool.resourceClaims }}
  resourceClaims:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: devbench
      image: {{ .image }}
      args:
        - {{ .workers | empty | ternary "run" "scale" }}
        {{- range include "devbench.pool.indexes" . | fromJsonArray }}
        - {{ hasKey $root.Values.customWorkloads . | ternary (printf "/workloads/%s.py" .) . | quote }}
        {{- end }}
        {{- if .workers }}
        {{- include "devbench.workers.arguments" . | nindent 8 }}
        {{- else }}
        - --only
        - $(JOB_COMPLETION_INDEX)
        {{- end }}
      {{- $env := include "devbench.run.env" . }}
      {{- $mounts := include "devbench.run.mounts" . }}
      {{- include "devbench.container" (dict "root" $root "options" $pool "env" $env "mounts" $mounts) | nindent 6 }}
      {{- if $root.Values.metrics.enabled }}
      ports:
        - name: metrics
          containerPort: {{ int $root.Values.metrics.port }}
      {{- end }}
      resources:
        {{- include "devbench.run.resources" . | nindent 8 }}
      terminationMessagePolicy: FallbackToLogsOnError
  {{- include "devbench.volumes" (dict "options" $pool "volumes" (include "devbench.run.volumes" .)) | nindent 2 }}
{{- end -}}

{{/* The init container that makes the token of the run. Only this container sees the token of the hub. It requests what the
run does, without a GPU, so the pod requests no more. Arguments: root, pool, backend, image. */}}
{{- define "devbench.run.token.container" -}}
{{- $pool := omit .pool "resourceClaims" "gpuResource" -}}
- name: run-token
  image: {{ .image }}
  args: [run-token, /etc/devbench/run/{{ .root.Values.hub.auth.tokenKey }}]
  {{- $env := printf "%s\n%s" (include "devbench.run.id" .) (include "devbench.client.env" .root) }}
  {{- $mounts := printf "%s\n%s" (include "devbench.client.mounts" .root) "- {name: run-token, mountPath: /etc/devbench/run}" }}
  {{- include "devbench.container" (dict "root" .root "options" $pool "env" $env "mounts" $mounts) | nindent 2 }}
  resources:
    {{- include "devbench.run.resources" (dict "pool" $pool "backend" dict) | nindent 4 }}
  terminationMessagePolicy: FallbackToLogsOnError
{{- end -}}

{{/* Resources of the container, with limits equal to requests. Arguments: pool, backend. */}}
{{- define "devbench.run.resources" -}}
{{- $pool := .pool -}}
{{- $gpu := default (empty $pool.resourceClaims | ternary .backend.resource "") $pool.gpuResource -}}
{{- range $part := list "requests" "limits" }}
{{ $part }}:
  cpu: {{ int $pool.cpu }}
  memory: {{ $pool.memory }}
  ephemeral-storage: {{ $pool.ephemeralStorage }}
  {{- if and $.backend.gpu $gpu }}
  {{ $gpu }}: {{ int $pool.gpus }}
  {{- end }}
{{- end }}
{{- with $pool.resourceClaims }}
claims:
  {{- range . }}
  - name: {{ .name | quote }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Mounts of the container. Arguments: root, pool, backend. */}}
{{- define "devbench.run.mounts" -}}
- {name: results, mountPath: /results}
- {name: tmp, mountPath: /tmp}
{{- if include "devbench.run.memory" . }}
- {name: shared-memory, mountPath: /dev/shm}
{{- end }}
- {name: {{ .root.Values.hub.auth.runTokens | ternary "run-token" "hub-token" }}, mountPath: /etc/devbench/hub, readOnly: true}
{{- include "devbench.workload.mounts" . }}
{{- if .pool.dataClaim }}
- {name: data, mountPath: /data, readOnly: true}
{{- end }}
{{- if .backend.kernelCache }}
- {name: {{ .pool.backend }}-cache, mountPath: /var/cache/{{ .pool.backend }}}
{{- end }}
{{- end -}}

{{/* Volumes of the pod. Arguments: root, name, pool, backend. */}}
{{- define "devbench.run.volumes" -}}
- name: results
  emptyDir: {}
- name: tmp
  emptyDir: {}
{{- with include "devbench.run.memory" . }}
- name: shared-memory
  emptyDir: {medium: Memory, sizeLimit: {{ . }}}
{{- end }}
{{ include "devbench.hub.volume" .root }}
{{- if .root.Values.hub.auth.runTokens }}
- name: run-token
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
{{- end }}
{{- include "devbench.workload.volumes" . }}
{{- if .pool.dataClaim }}
- name: data
  persistentVolumeClaim: {claimName: {{ .pool.dataClaim | quote }}, readOnly: true}
{{- end }}
{{- if .backend.kernelCache }}
- name: {{ .pool.backend }}-cache
  {{- if or .pool.kernelCache.existingClaim .pool.kernelCache.size }}
  persistentVolumeClaim:
    claimName: {{ default (include "devbench.cache.claim" .) .pool.kernelCache.existingClaim | quote }}
  {{- else }}
  emptyDir: {}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Size of the volume at /dev/shm, or nothing. Arguments: root, pool. */}}
{{- define "devbench.run.memory" -}}
{{- default (empty .pool.workers | ternary "" .root.DevbenchFacts.sharedMemory) .pool.sharedMemory -}}
{{- end -}}

{{/* Name of the claim of a pool's kernel cache. Arguments: root, name, pool. */}}
{{- define "devbench.cache.claim" -}}
{{ include "devbench.fullname" .root }}-{{ .name }}-{{ .pool.backend }}
{{- end -}}
