{{/* What a run with `workers` needs besides. Several workers are the pods of one Indexed Job. Each has a stable name, and a
node of its own. */}}

{{/* The name of a run: at most 43 characters, because the names of its pods are longer by the replicated job of a JobSet,
the index, and 6 characters. What is cut is part of the hash. Arguments: scope (of the run), content (to hash). */}}
{{- define "devbench.workers.name" -}}
{{- $full := printf "%s-%s" (include "devbench.fullname" .scope.root) .scope.name -}}
{{- $hash := list $full .scope.workers .content | toJson | sha256sum | trunc 8 -}}
{{ $full | trunc 29 | trimSuffix "-" }}-w{{ .scope.workers }}-{{ $hash }}
{{- end -}}

{{/* Arguments of `devbench scale` after the workload. Kubernetes replaces the name of the Job, which a CronJob or a JobSet
chooses. Arguments: the scope of a run. */}}
{{- define "devbench.workers.arguments" -}}
- --workers
- {{ .workers | quote }}
{{- if gt .workers 1 }}
{{- $hosts := list }}
{{- range $index := until .workers }}{{ $hosts = append $hosts (printf "$(DEVBENCH_JOB_NAME)-%d.%s" $index $.run) }}{{ end }}
- --hosts
- {{ join "," $hosts }}
- --rendezvous-timeout # as long as the watcher waits for a node
- {{ printf "%ds" (int64 .root.Values.watcher.waitSeconds) }}
{{- end }}
{{- end -}}

{{/* Terms of the anti-affinity: one worker per node, and one run of the pool at a time. Otherwise, each of two runs could hold
a part of the nodes and wait for the rest. All nodes of a pool have the same operating system. A pod of another run of the
pool matches all terms, because the scheduler tries again only if a pod ends that does. Arguments: the scope of a run. */}}
{{- define "devbench.workers.apart" -}}
- topologyKey: kubernetes.io/hostname
  labelSelector:
    matchExpressions:
      - {key: devbench/run, operator: Exists}
- topologyKey: kubernetes.io/os
  labelSelector:
    matchExpressions:
      - {key: devbench/pool, operator: In, values: [{{ .name | quote }}]}
      - {key: devbench/run, operator: NotIn, values: [{{ .run | quote }}]}
{{- end -}}

{{/* Find what a run has been created as, or decide what to create: set live and kind. A run keeps its kind if the cluster
gets or loses JobSets. Arguments: the scope of a run. */}}
{{- define "devbench.run.find" -}}
{{- $namespace := .root.Release.Namespace -}}
{{- $api := "jobset.x-k8s.io/v1alpha2" -}}
{{- $_ := set . "live" (lookup "batch/v1" "Job" $namespace .run) -}}
{{- $_ = set . "kind" "Job" -}}
{{- if and (gt .workers 1) (not .live) -}}
{{- if .root.Capabilities.APIVersions.Has (printf "%s/JobSet" $api) }}{{ $_ = set . "live" (lookup $api "JobSet" $namespace .run) }}{{ end -}}
{{- if or .live (include "devbench.wanted" (dict "root" .root "enabled" .pool.jobSet "api" $api "kind" "JobSet")) -}}
{{- $_ = set . "kind" "JobSet" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The name of the Job of a run. A JobSet creates its Job itself. Arguments: the scope of a run, with kind. */}}
{{- define "devbench.run.job" -}}
{{ .run }}{{ if eq .kind "JobSet" }}-workers-0{{ end }}
{{- end -}}

{{/* A JobSet, which cannot change. If it exists, it stays as it is, with what Kueue has added. Arguments: the scope of a run,
with live. */}}
{{- define "devbench.jobset" -}}
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: {{ .run }}
  {{- $metadata := include "devbench.run.metadata" . | fromYaml }}
  {{- toYaml $metadata | nindent 2 }}
spec:
  {{- if .live }}
  {{- omit .live.spec "suspend" | toYaml | nindent 2 }}
  {{- else }}
  network:
    enableDNSHostnames: true
    publishNotReadyAddresses: true
    subdomain: {{ .run }}
  replicatedJobs:
    - name: workers
      replicas: 1
      template:
        metadata:
          {{- $labels := omit $metadata.labels "kueue.x-k8s.io/queue-name" }}
          {{- with .pool.queue }}{{ $_ := set $labels "devbench/queue" . }}{{ end }}
          {{- dict "labels" $labels "annotations" $metadata.annotations | toYaml | nindent 10 }}
        spec:
          {{- include "devbench.run.mutable" . | nindent 10 }}
          {{- include "devbench.run.fixed" . | nindent 10 }}
  {{- end }}
{{- end -}}

{{/* The Service that gives each worker a name: JOB-INDEX.RUN. Names exist before the workers are ready, because they find
each other before they measure. Arguments: the scope of a run. */}}
{{- define "devbench.workers.service" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ .run }}
  {{- include "devbench.metadata" (dict "root" .root "component" "run" "labels" (dict "devbench/pool" .name)) | nindent 2 }}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    {{- include "devbench.selector" (dict "root" .root "component" "run") | nindent 4 }}
    devbench/run: {{ .run }}
{{- end -}}

{{/* The Service and the NetworkPolicy of several workers, if the run has several. A JobSet creates its Service itself.
Arguments: the scope of a run, with kind. */}}
{{- define "devbench.workers.network" -}}
{{- if gt .workers 1 }}
{{- if eq .kind "Job" }}
---
{{ include "devbench.workers.service" . }}
{{- end }}
{{- if .root.Values.networkPolicy.enabled }}
---
{{ include "devbench.workers.policy" . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The traffic between the workers of one run. TensorFlow listens on any port. Arguments: the scope of a run. */}}
{{- define "devbench.workers.policy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .run }}
  {{- include "devbench.metadata" (dict "root" .root "component" "run" "labels" (dict "devbench/pool" .name)) | nindent 2 }}
spec:
  {{- $selector := include "devbench.selector" (dict "root" .root "component" "run") | fromYaml }}
  {{- $workers := dict "podSelector" (dict "matchLabels" (set $selector "devbench/run" .run)) }}
  {{- toYaml $workers | nindent 2 }}
  policyTypes: [Ingress, Egress]
  ingress:
    - from: # the other workers
        {{- list $workers | toYaml | nindent 8 }}
  egress:
    - to: # the other workers
        {{- list $workers | toYaml | nindent 8 }}
{{- end -}}
