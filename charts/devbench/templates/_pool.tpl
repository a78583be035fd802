{{/* Pools. Their own values override poolDefaults, which override the preset. */}}

{{/* A complete pool as YAML. Arguments: root, name. */}}
{{- define "devbench.pool" -}}
{{- $pool := deepCopy .root.Values.poolDefaults -}}
{{- range $key, $value := index .root.Values.pools .name -}}
{{- if and (kindIs "map" $value) (kindIs "map" (index $pool $key)) -}}
{{- $_ := set $pool $key (include "devbench.merge" (list (index $pool $key) $value) | fromYaml) -}}
{{- else -}}
{{- $_ := set $pool $key $value -}}
{{- end -}}
{{- end -}}
{{- $_ := set $pool "settings" (include "devbench.merge" (list .root.Values.settings $pool.settings) | fromYaml) -}}
{{- $_ := set $pool "workloads" (default .root.Values.workloads $pool.workloads) -}}
{{- toYaml $pool -}}
{{- end -}}

{{/* Whether there is a test pod: if the release starts runs that it can wait for. The argument is the root. */}}
{{- define "devbench.tested" -}}
{{- if and .Values.test.enabled .Values.runNow -}}
{{- range $name, $_ := .Values.pools -}}
{{- if (include "devbench.pool" (dict "root" $ "name" $name) | fromYaml).enabled }}true{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Refuse values that do not fit together. A run would fail or hang on its node. Arguments: root, name, pool, backend. */}}
{{- define "devbench.pool.check" -}}
{{- $nodes := int .pool.nodes -}}
{{- $most := $nodes -}}
{{- range .pool.workers }}{{ $most = max $most (int .) }}{{ end -}}
{{- if and (gt $nodes 1) (not .pool.exclusiveNode) -}}
{{- fail (printf "pools.%s.nodes is %d, so pools.%s.exclusiveNode must be true" .name $nodes .name) -}}
{{- end -}}
{{- if and (gt $nodes 1) .pool.workers -}}
{{- fail (printf "pools.%s.nodes is %d, but a pool with workers uses as many nodes as workers. Remove pools.%s.nodes" .name $nodes .name) -}}
{{- end -}}
{{- if and (gt (int $most) 1) .backend.kernelCache .pool.kernelCache.size (not .pool.kernelCache.existingClaim) -}}
{{- fail (printf "pools.%s.kernelCache.size creates a volume for one node, but the pool uses %d nodes at the same time. Name a claim with the access mode ReadWriteMany in pools.%s.kernelCache.existingClaim" .name (int $most) .name) -}}
{{- end -}}
{{- if .pool.workers -}}
{{- range $name := .root.DevbenchFacts.notWithWorkers -}}
{{- if index $.pool.settings $name }}{{ fail (printf "pools.%s has workers, so it cannot have the setting %s" $.name $name) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- range $name := .root.DevbenchFacts.onlyForScripts -}}
{{- if index $.pool.settings $name -}}
{{- range $workload := $.pool.workloads -}}
{{- if not (hasKey $.root.Values.customWorkloads $workload) -}}
{{- fail (printf "pools.%s has the setting %s, which only a script takes, but it measures the built-in workload %s" $.name $name $workload) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What each index of a pool's Job measures, as JSON. Each workload comes once per node, one after the other, so that
the nodes measure the same workload at the same time. Arguments: pool. */}}
{{- define "devbench.pool.indexes" -}}
{{- $indexes := list -}}
{{- range $workload := .pool.workloads -}}
{{- range until (int $.pool.nodes) }}{{ $indexes = append $indexes $workload }}{{ end -}}
{{- end -}}
{{- toJson $indexes -}}
{{- end -}}

{{/* The runs of a pool, as JSON. Each has a Job of its own. With `workers`, there is a run for each workload and each number
of workers, else one for all workloads. Arguments: pool. */}}
{{- define "devbench.pool.runs" -}}
{{- $runs := list -}}
{{- range $workload := .pool.workloads -}}
{{- range $.pool.workers }}{{ $runs = append $runs (dict "workloads" (list $workload) "workers" (int .)) }}{{ end -}}
{{- end -}}
{{- default (list (dict "workloads" .pool.workloads "workers" 0)) $runs | toJson -}}
{{- end -}}

{{/* A pool's backend, as YAML: its row of backends.yaml, and `measured`, the backends that the pool's runs measure.
Arguments: root, pool. */}}
{{- define "devbench.backend" -}}
{{- $table := .root.Files.Get "backends.yaml" | fromYaml -}}
{{- $backend := index $table.backends .pool.backend -}}
{{- $both := printf "%s,%s" $table.reference .pool.backend -}}
{{- $_ := set $backend "measured" (and $backend.gpu .pool.cpuColumn (empty .pool.workers) | ternary $both .pool.backend) -}}
{{- toYaml $backend -}}
{{- end -}}
