{{/* The pod that measures, and its Job. */}}

{{/* A pool's pod template. Arguments: root, name, pool. */}}
{{- define "devbench.run.pod" -}}
{{- $root := .root -}}
{{- $pool := .pool -}}
{{- $place := include "devbench.place" . | fromYaml -}}
{{- $backend := include "devbench.backend" . | fromYaml -}}
{{- $image := include "devbench.image" (dict "root" $root "backend" $pool.backend "override" $pool.image) -}}
{{- $own := $root.Values.customWorkloads -}}
metadata:
  labels:
    {{- include "devbench.selector" (dict "root" $root "component" "run") | nindent 4 }}
    devbench/pool: {{ .name }}
    sidecar.istio.io/inject: "false"
    {{- with $pool.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    cluster-autoscaler.kubernetes.io/safe-to-evict: "false"
    karpenter.sh/do-not-disrupt: "true"
    linkerd.io/inject: disabled
    {{- with $root.Values.metrics }}
    {{- if and .enabled .annotations (ne (toString .podMonitor.enabled) "true") }}
    prometheus.io/scrape: "true"
    prometheus.io/port: {{ .port | quote }}
    prometheus.io/path: /metrics
    {{- end }}
    {{- end }}
    {{- with $pool.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  activeDeadlineSeconds: {{ int64 $pool.runSeconds }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  restartPolicy: Never
  terminationGracePeriodSeconds: 60
  {{- include "devbench.pull.secrets" $root | nindent 2 }}
  {{- with $pool.runtimeClassName }}
  runtimeClassName: {{ . }}
  {{- end }}
  {{- with $pool.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    {{- include "devbench.pod.security" $root | nindent 4 }}
  {{- with $place.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $place.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if $pool.affinity }}
  affinity:
    {{- toYaml $pool.affinity | nindent 4 }}
  {{- else if or $place.expressions $pool.exclusiveNode }}
  affinity:
    {{- with $place.expressions }}
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
          - matchExpressions:
              {{- toYaml . | nindent 14 }}
    {{- end }}
    {{- if $pool.exclusiveNode }}
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - topologyKey: kubernetes.io/hostname
          namespaceSelector: {}
          labelSelector:
            matchLabels:
              app.kubernetes.io/name: {{ default $root.Chart.Name $root.Values.nameOverride }}
              app.kubernetes.io/component: run
    {{- end }}
  {{- end }}
  containers:
    - name: devbench
      image: {{ $image }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args:
        - run
        {{- range $pool.workloads }}
        - {{ hasKey $own . | ternary (printf "/workloads/%s.py" .) . }}
        {{- end }}
        - --only
        - $(JOB_COMPLETION_INDEX)
      env:
        - name: HOME
          value: /tmp
        - name: DEVBENCH_BACKEND
          value: {{ $backend.measured }}
        - name: DEVBENCH_OUTPUT
          value: /results
        {{- if $pool.dataClaim }}
        - name: DEVBENCH_DATA_DIR
          value: /data
        {{- end }}
        {{- if $place.hourlyPrice }}
        - name: DEVBENCH_HOURLY_PRICE
          value: {{ $place.hourlyPrice | quote }}
        - name: DEVBENCH_CURRENCY
          value: {{ $pool.currency }}
        {{- end }}
        {{- if $root.Values.metrics.enabled }}
        - name: DEVBENCH_METRICS_PORT
          value: {{ $root.Values.metrics.port | quote }}
        - name: DEVBENCH_LINGER
          {{- with $root.Values.metrics }}
          value: {{ ternary (mul 2 (int .podMonitor.intervalSeconds)) .lingerSeconds (kindIs "invalid" .lingerSeconds) | quote }}
          {{- end }}
        {{- end }}
        {{- include "devbench.settings.env" (dict "prefix" "DEVBENCH_" "settings" $pool.settings) | nindent 8 }}
        {{- include "devbench.hub.env" $root | nindent 8 }}
        - name: DEVBENCH_HUB_WAIT
          value: 15m # the pod keeps nothing that the hub has not received by then
        - name: DEVBENCH_POOL
          value: {{ .name }}
        - name: DEVBENCH_IMAGE
          value: {{ $image }}
        {{- with $pool.image.digest }}
        - name: DEVBENCH_IMAGE_DIGEST
          value: {{ . }}
        {{- end }}
        {{- with $place.instanceType }}
        - name: DEVBENCH_INSTANCE_TYPE
          value: {{ . }}
        {{- end }}
        - name: DEVBENCH_NODE
          valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
        - name: DEVBENCH_NAMESPACE
          valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
        # The id and attempt of the run. bench/watcher/pod_status.py reads them too.
        - name: JOB_COMPLETION_INDEX
          valueFrom: {fieldRef: {fieldPath: "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
        - name: DEVBENCH_JOB
          valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/job-name']"}}
        - name: DEVBENCH_JOB_UID
          valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/controller-uid']"}}
        - name: DEVBENCH_RUN_ID
          value: $(DEVBENCH_JOB).$(DEVBENCH_JOB_UID).$(JOB_COMPLETION_INDEX)
        - name: DEVBENCH_FAILURES
          valueFrom: {fieldRef: {fieldPath: "metadata.annotations['batch.kubernetes.io/job-index-failure-count']"}}
        - name: DEVBENCH_ATTEMPT
          value: 1$(DEVBENCH_FAILURES)1
        {{- with $backend.kernelCache }}
        - name: {{ . }}
          value: /var/cache/{{ $pool.backend }}
        {{- end }}
        {{- if and $backend.gpu $pool.allowSharedGpu }}
        - name: DEVBENCH_SHARED_GPU
          value: allowed
        {{- end }}
        {{- include "devbench.plain.env" $pool.env | nindent 8 }}
      {{- if $root.Values.metrics.enabled }}
      ports:
        - name: metrics
          containerPort: {{ $root.Values.metrics.port }}
      {{- end }}
      resources:
        {{- range $part := list "requests" "limits" }}
        {{ $part }}:
          cpu: {{ int $pool.cpu }}
          memory: {{ $pool.memory }}
          ephemeral-storage: {{ $pool.ephemeralStorage }}
          {{- with $backend.resource }}
          {{ . }}: {{ int $pool.gpus }}
          {{- end }}
        {{- end }}
      securityContext:
        {{- include "devbench.container.security" $root | nindent 8 }}
      terminationMessagePolicy: FallbackToLogsOnError
      volumeMounts:
        - {name: results, mountPath: /results}
        - {name: tmp, mountPath: /tmp}
        - {name: hub-token, mountPath: /etc/devbench/hub, readOnly: true}
        {{- range $name := $pool.workloads }}
        {{- with index $own $name }}
        - {name: {{ include "devbench.workload.volume" (dict "name" $name "own" .) }}, mountPath: /workloads/{{ $name }}.py, subPath: {{ $name }}.py, readOnly: true}
        {{- end }}
        {{- end }}
        {{- if $pool.dataClaim }}
        - {name: data, mountPath: /data, readOnly: true}
        {{- end }}
        {{- if $backend.kernelCache }}
        - {name: {{ $pool.backend }}-cache, mountPath: /var/cache/{{ $pool.backend }}}
        {{- end }}
  volumes:
    - name: results
      emptyDir: {}
    - name: tmp
      emptyDir: {}
    {{- include "devbench.hub.volume" $root | nindent 4 }}
    {{- include "devbench.workload.volumes" . | nindent 4 }}
    {{- if $pool.dataClaim }}
    - name: data
      persistentVolumeClaim: {claimName: {{ $pool.dataClaim }}, readOnly: true}
    {{- end }}
    {{- if $backend.kernelCache }}
    - name: {{ $pool.backend }}-cache
      {{- if or $pool.kernelCache.existingClaim $pool.kernelCache.size }}
      persistentVolumeClaim:
        claimName: {{ default (include "devbench.cache.claim" .) $pool.kernelCache.existingClaim }}
      {{- else }}
      emptyDir: {}
      {{- end }}
    {{- end }}
{{- end -}}

{{/* Name of the claim of a pool's kernel cache. Arguments: root, name, pool. */}}
{{- define "devbench.cache.claim" -}}
{{ include "devbench.fullname" .root }}-{{ .name }}-{{ .pool.backend }}
{{- end -}}

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

{{- define "devbench.workload.volume" -}}
{{- if .own.inline -}}
workloads
{{- else -}}
workload-{{ .name | lower | replace "_" "-" }}
{{- end -}}
{{- end -}}

{{- define "devbench.workload.volumes" -}}
{{- $root := .root -}}
{{- $inline := false -}}
{{- range $name := .pool.workloads }}
{{- with index $root.Values.customWorkloads $name }}
{{- if .inline }}
{{- $inline = true }}
{{- else }}
- name: {{ include "devbench.workload.volume" (dict "name" $name "own" .) }}
  configMap:
    name: {{ .configMap.name }}
    items:
      - {key: {{ default (printf "%s.py" $name) .configMap.key }}, path: {{ $name }}.py}
{{- end }}
{{- end }}
{{- end }}
{{- if $inline }}
- name: workloads
  configMap:
    name: {{ include "devbench.workload.inline.name" $root }}
{{- end }}
{{- end -}}

{{/* The immutable part of a Job. The Job's name ends with its hash. Arguments: root, name, pool. */}}
{{- define "devbench.run.fixed" -}}
completionMode: Indexed
completions: {{ len .pool.workloads }}
backoffLimitPerIndex: {{ int .pool.evictions }}
podReplacementPolicy: Failed
podFailurePolicy:
  rules: # an evicted pod is replaced, a failed one is not
    - action: Count
      onPodConditions:
        - type: DisruptionTarget
          status: "True"
    - action: FailJob
      onExitCodes:
        containerName: devbench
        operator: In
        values: [3]
    - action: FailIndex
      onExitCodes:
        containerName: devbench
        operator: NotIn
        values: [0]
template:
  {{- include "devbench.run.pod" . | nindent 2 }}
{{- end -}}

{{/* Labels and annotations of a Job. They tell the watcher what each index runs. Arguments: root, name, pool. */}}
{{- define "devbench.run.labels" -}}
{{ include "devbench.labels" (dict "root" .root "component" "run") }}
devbench/pool: {{ .name }}
{{- with .pool.queue }}
kueue.x-k8s.io/queue-name: {{ . }}
{{- end }}
{{- end -}}

{{- define "devbench.run.annotations" -}}
devbench/workloads: {{ .pool.workloads | toJson | quote }}
devbench/backends: {{ (include "devbench.backend" . | fromYaml).measured }}
{{- end -}}

{{- define "devbench.run.name" -}}
{{ include "devbench.fullname" .root }}-{{ .name }}-{{ .fixed | sha256sum | trunc 8 }}
{{- end -}}
