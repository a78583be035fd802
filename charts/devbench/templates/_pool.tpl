{{/* Pools. Their own values override poolDefaults, which override the preset. */}}

{{/* A complete pool as YAML. Arguments: root, name. */}}
{{- define "devbench.pool" -}}
{{- $pool := deepCopy .root.Values.poolDefaults -}}
{{- range $key, $value := index .root.Values.pools .name -}}
{{- if and (kindIs "map" $value) (kindIs "map" (index $pool $key)) -}}
{{- $inner := index $pool $key -}}
{{- range $field, $setting := $value }}{{ $_ := set $inner $field $setting }}{{ end -}}
{{- else -}}
{{- $_ := set $pool $key $value -}}
{{- end -}}
{{- end -}}
{{- $settings := deepCopy .root.Values.settings -}}
{{- range $key, $value := $pool.settings }}{{ $_ := set $settings $key $value }}{{ end -}}
{{- $_ := set $pool "settings" $settings -}}
{{- $_ := set $pool "workloads" (default .root.Values.workloads $pool.workloads) -}}
{{- toYaml $pool -}}
{{- end -}}

{{/* A pool's backend, as YAML: its row of backends.yaml, and `measured`, the backends that the pool's runs measure.
Arguments: root, pool. */}}
{{- define "devbench.backend" -}}
{{- $table := .root.Files.Get "backends.yaml" | fromYaml -}}
{{- $backend := index $table.backends .pool.backend -}}
{{- $both := printf "%s,%s" $table.reference .pool.backend -}}
{{- $_ := set $backend "measured" (and $backend.gpu .pool.cpuColumn | ternary $both .pool.backend) -}}
{{- toYaml $backend -}}
{{- end -}}

{{/* The nodes of a pool and their price, as YAML: nodeSelector, expressions, tolerations, instanceType, hourlyPrice.
Arguments: root, name, pool. */}}
{{- define "devbench.place" -}}
{{- $preset := .root.Files.Get (printf "presets/%s.yaml" .pool.preset) | fromYaml -}}
{{- $bare := hasKey $preset "bare" -}}
{{- $common := ternary dict (.root.Files.Get "presets/common.yaml" | fromYaml) $bare -}}
{{- $backend := include "devbench.backend" . | fromYaml -}}
{{- $kind := default dict $preset.cpu -}}
{{- if and $backend.gpu (not $bare) -}}
{{- $accelerators := default dict $preset.accelerators -}}
{{- if not (hasKey $accelerators .pool.accelerator) -}}
{{- fail (printf "pools.%s.accelerator is '%s', but the preset %s has only %s. For another GPU, use preset none with your own nodeSelector" .name .pool.accelerator .pool.preset (keys $accelerators | sortAlpha | join ", ")) -}}
{{- end -}}
{{- $kind = index $accelerators .pool.accelerator -}}
{{- end -}}
{{- $selector := merge (deepCopy .pool.nodeSelector) (default dict $kind.nodeSelector) (default dict $common.nodeSelector) -}}
{{- $expressions := list -}}
{{- with $kind.product -}}
{{- $expressions = append $expressions (dict "key" $backend.productLabel "operator" "In" "values" (ternary (list . (printf "%s-SHARED" .)) (list .) $.pool.allowSharedGpu)) -}}
{{- end -}}
{{- if not $backend.gpu -}}
{{- range $common.notForCpu }}{{ $expressions = append $expressions (dict "key" . "operator" "DoesNotExist") }}{{ end -}}
{{- with $common.typesNotForCpu }}{{ $expressions = append $expressions (dict "key" "node.kubernetes.io/instance-type" "operator" "NotIn" "values" .) }}{{ end -}}
{{- else if not .pool.allowSharedGpu -}}
{{- $expressions = concat $expressions (default list $common.notShared) -}}
{{- with $kind.shared }}{{ $expressions = append $expressions (dict "key" $backend.productLabel "operator" "NotIn" "values" .) }}{{ end -}}
{{- end -}}
{{- $tolerations := .pool.tolerations -}}
{{- if and $backend.gpu (not $bare) -}}
{{- $taint := dict "key" $backend.resource "operator" "Exists" "effect" "NoSchedule" -}}
{{- $tolerations = concat $tolerations (list $taint) (default list $preset.gpuTolerations) -}}
{{- end -}}
{{- if .pool.spot }}{{ $tolerations = concat $tolerations (default list $preset.spotTolerations) }}{{ end -}}
{{- $type := default (default "" $kind.instanceType) .pool.instanceType -}}
{{- if eq $type "any" }}{{ $type = "" }}{{ end -}}
{{- if $type }}{{ $_ := set $selector "node.kubernetes.io/instance-type" $type }}{{ end -}}
{{- $listed := default dict (index (default dict $preset.instanceTypes) $type) -}}
{{- if and $listed.vcpus (ge (int .pool.cpu) (int $listed.vcpus)) -}}
{{- fail (printf "pools.%s.cpu is %d, but a %s has %d vCPUs and the node needs one of them. Use at most %d" .name (int .pool.cpu) $type (int $listed.vcpus) (sub (int $listed.vcpus) 1)) -}}
{{- end -}}
{{- $priced := or (not $listed.accelerator) (eq (default "" $listed.accelerator) .pool.accelerator) -}}
{{- $price := default (and $priced (not .pool.spot) $listed.hourlyPrice) .pool.hourlyPrice -}}
{{- toYaml (dict "nodeSelector" $selector "expressions" $expressions "tolerations" $tolerations "instanceType" $type "hourlyPrice" (default 0 $price)) -}}
{{- end -}}
