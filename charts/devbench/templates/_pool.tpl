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
