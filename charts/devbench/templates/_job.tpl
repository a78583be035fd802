{{/* The Jobs that run a pool's workloads. Their names end with a hash of what changes a measurement. Other fields of a
Job that cannot change stay as they were when it was created. */}}

{{/* All that the templates of a pool need, by name: root, name, pool, backend, place, image. Arguments: root, name. */}}
{{- define "devbench.scope" -}}
{{- $scope := . -}}
{{- $_ := set $scope "pool" (include "devbench.pool" . | fromYaml) -}}
{{- if $scope.pool.enabled -}}
{{- $_ = set $scope "backend" (include "devbench.backend" . | fromYaml) -}}
{{- include "devbench.pool.check" $scope -}}
{{- $_ = set $scope "place" (include "devbench.place" . | fromYaml) -}}
{{- $_ = set $scope "image" (include "devbench.image" (dict "root" .root "backend" $scope.pool.backend "override" $scope.pool.image)) -}}
{{- end -}}
{{- end -}}

{{/* Add to a dict what the templates of one run need: the scope of its pool, with the run's own workloads and workers, and
run, the name of its Job or CronJob. Arguments: scope, of (an entry of devbench.pool.runs), scheduled. */}}
{{- define "devbench.run.scope" -}}
{{- $run := . -}}
{{- range $key, $value := .scope }}{{ $_ := set $run $key $value }}{{ end -}}
{{- $pool := set (omit .scope.pool "workers") "workloads" .of.workloads -}}
{{- with int .of.workers }}{{ $_ := set $pool "workers" . }}{{ end -}}
{{- $_ := set $run "pool" $pool -}}
{{- $_ = set $run "workers" (int .of.workers) -}}
{{- $_ = set $run "run" (include (.scheduled | ternary "devbench.run.schedule.name" "devbench.run.name") $run) -}}
{{- end -}}

{{/* The name of a Job. It identifies what the values ask for, not what this version of the chart makes of it: a preset with
more GPU models or a new option starts no run. Arguments: the scope of a run. */}}
{{- define "devbench.run.name" -}}
{{- $facts := .root.DevbenchFacts -}}
{{- $measured := .pool -}}
{{- range $facts.unmeasured }}{{ $measured = omit $measured . }}{{ end -}}
{{- $measured = include "devbench.changed" (dict "values" $measured "defaults" $facts.defaults.poolDefaults) -}}
{{- $all := list $measured .image (include "devbench.workload.content" .) (int .root.Values.rerun) -}}
{{- if .workers -}}
{{ include "devbench.workers.name" (dict "scope" . "content" $all) }}
{{- else -}}
{{ include "devbench.fullname" .root }}-{{ .name }}-{{ toJson $all | sha256sum | trunc 8 }}
{{- end -}}
{{- end -}}

{{/* The name of a CronJob. Arguments: the scope of a run. */}}
{{- define "devbench.run.schedule.name" -}}
{{- if .workers -}}
{{ include "devbench.workers.name" (dict "scope" . "content" .pool.workloads) }}
{{- else -}}
{{ include "devbench.fullname" .root }}-{{ .name }}
{{- end -}}
{{- end -}}

{{/* How many pods of a Job run at the same time. Arguments: the scope of a run. */}}
{{- define "devbench.run.parallelism" -}}
{{ default (int .pool.nodes) .workers }}
{{- end -}}

{{/* The part of a Job that can change. Arguments: the scope of a run. */}}
{{- define "devbench.run.mutable" -}}
parallelism: {{ include "devbench.run.parallelism" . }}
{{- if .pool.jobSeconds }}
activeDeadlineSeconds: {{ int64 .pool.jobSeconds }}
{{- end }}
{{- end -}}

{{/* The part of a Job that cannot change. Arguments: the scope of a run. */}}
{{- define "devbench.run.fixed" -}}
completionMode: Indexed
podReplacementPolicy: Failed
{{- if gt .workers 1 }}
completions: {{ .workers }}
backoffLimit: 0 # the other workers cannot go on without one of them
{{- else }}
completions: {{ mul (len .pool.workloads) (int .pool.nodes) }}
backoffLimitPerIndex: {{ int .pool.evictions }}
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
    - action: FailIndex # whichever container failed, an init container too
      onExitCodes:
        operator: NotIn
        values: [0]
{{- end }}
template:
  {{- include "devbench.run.pod" . | nindent 2 }}
{{- end -}}

{{/* The same as JSON. If the Job exists, it is what the Job was created with, which the Job keeps in an annotation.
Arguments: the scope of a run, with live: the Job in the cluster, or nothing. */}}
{{- define "devbench.run.kept" -}}
{{- $kept := dig "metadata" "annotations" "devbench/spec" "" (default dict .live) -}}
{{- default (include "devbench.run.fixed" . | fromYaml | toJson) $kept -}}
{{- end -}}

{{/* The same as YAML, with the tolerations that Kueue may have added. Arguments: the scope of a run, with live and spec. */}}
{{- define "devbench.run.spec" -}}
{{- $spec := fromJson .spec -}}
{{- $tolerations := dig "spec" "template" "spec" "tolerations" list (default dict .live) -}}
{{- if and (include "devbench.run.queue" .) $tolerations }}{{ $_ := set $spec.template.spec "tolerations" $tolerations }}{{ end -}}
{{- toYaml $spec -}}
{{- end -}}

{{/* The queue of a Job. Kueue refuses to change it unless the Job is suspended, which it is while it waits in a queue.
Without a queue, nothing would start a suspended Job. Arguments: the scope of a run, with live. */}}
{{- define "devbench.run.queue" -}}
{{- $live := default dict .live -}}
{{- $before := dig "metadata" "labels" "kueue.x-k8s.io/queue-name" "" $live -}}
{{- $waits := and $before (dig "spec" "suspend" false $live) -}}
{{- if or (empty $live) (and $waits .pool.queue) -}}
{{ .pool.queue }}
{{- else -}}
{{ $before }}
{{- end -}}
{{- end -}}

{{/* Metadata of a Job, besides its name. They tell the watcher what each index runs. Arguments: the scope of a run, and
optionally live: the Job in the cluster, and spec: what to keep. */}}
{{- define "devbench.run.metadata" -}}
{{- $labels := dict "devbench/pool" .name -}}
{{- with include "devbench.run.queue" . }}{{ $_ := set $labels "kueue.x-k8s.io/queue-name" . }}{{ end -}}
{{- $annotations := dict "devbench/workloads" (include "devbench.pool.indexes" .) "devbench/backends" .backend.measured -}}
{{- with .workers }}{{ $_ := set $annotations "devbench/workers" (toString .) }}{{ end -}}
{{- if and .spec (lt (len .spec) 150000) }}{{ $_ := set $annotations "devbench/spec" .spec }}{{ end -}}
{{- include "devbench.metadata" (dict "root" .root "component" "run" "labels" $labels "ours" $annotations "annotations" .pool.jobAnnotations) -}}
{{- end -}}

{{/* Seconds after which a Job of the schedule ends, so that a pool without nodes does not block the next one. The runs of a
pool wait for each other. Arguments: a scope. */}}
{{- define "devbench.run.schedule.seconds" -}}
{{- $runs := mul (len .pool.workloads) (max 1 (len .pool.workers)) (int64 .pool.runSeconds) -}}
{{- default (add (int64 .root.Values.watcher.waitSeconds) $runs) (int64 .pool.jobSeconds) -}}
{{- end -}}
