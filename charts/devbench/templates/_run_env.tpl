{{/* The chart's own variables of a run. Arguments: the scope of a run. */}}
{{- define "devbench.run.env" -}}
- name: HOME
  value: /tmp
- name: DEVBENCH_BACKEND
  value: {{ .backend.measured | quote }}
- name: DEVBENCH_OUTPUT
  value: /results
{{- if .pool.dataClaim }}
- name: DEVBENCH_DATA_DIR
  value: /data
{{- end }}
{{- if .place.hourlyPrice }}
- name: DEVBENCH_HOURLY_PRICE
  value: {{ .place.hourlyPrice | quote }}
- name: DEVBENCH_CURRENCY
  value: {{ .pool.currency | quote }}
{{- end }}
{{- with .root.Values.metrics }}
{{- if .enabled }}
- name: DEVBENCH_METRICS_PORT
  value: {{ int .port | quote }}
- name: DEVBENCH_SCRAPE_INTERVAL
  value: {{ int .podMonitor.intervalSeconds | quote }}
{{- if hasKey . "lingerSeconds" }}
- name: DEVBENCH_LINGER
  value: {{ int .lingerSeconds | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- if and .backend.gpu .pool.allowSharedGpu }}
- name: DEVBENCH_SHARED_GPU
  value: allowed
{{- end }}
{{- include "devbench.settings.env" (dict "prefix" "DEVBENCH_" "settings" .pool.settings) }}
{{ include "devbench.hub.env" .root }}
- name: DEVBENCH_HUB_WAIT
  value: 15m # the pod keeps nothing that the hub has not received by then
- name: DEVBENCH_POOL
  value: {{ .name | quote }}
- name: DEVBENCH_IMAGE
  value: {{ .image | quote }}
{{- with .pool.image.digest }}
- name: DEVBENCH_IMAGE_DIGEST
  value: {{ . | quote }}
{{- end }}
{{- with .place.instanceType }}
- name: DEVBENCH_INSTANCE_TYPE
  value: {{ . | quote }}
{{- end }}
- name: DEVBENCH_NODE
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
- name: DEVBENCH_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
{{ include "devbench.run.id" . }}
- name: DEVBENCH_FAILURES
  {{- if gt .workers 1 }}
  value: "0" # no index starts again
  {{- else }}
  valueFrom: {fieldRef: {fieldPath: "metadata.annotations['batch.kubernetes.io/job-index-failure-count']"}}
  {{- end }}
- name: DEVBENCH_ATTEMPT
  value: 1$(DEVBENCH_FAILURES)1
{{- with .backend.kernelCache }}
- name: {{ . }}
  value: /var/cache/{{ $.pool.backend }}
{{- end }}
{{- end -}}

{{/* The id of the run. bench/watcher/pod_status.py reads the same. Several workers are one run, which is that of index 0.
The schema of the values reserves these names. Arguments: the scope of a run. */}}
{{- define "devbench.run.id" -}}
- name: JOB_COMPLETION_INDEX # the name that Kubernetes gives it
  valueFrom: {fieldRef: {fieldPath: "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
- name: DEVBENCH_JOB_NAME
  valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/job-name']"}}
- name: DEVBENCH_JOB_UID
  valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/controller-uid']"}}
- name: DEVBENCH_RUN_ID
  value: $(DEVBENCH_JOB_NAME).$(DEVBENCH_JOB_UID).{{ gt .workers 1 | ternary "0" "$(JOB_COMPLETION_INDEX)" }}
{{- end -}}
