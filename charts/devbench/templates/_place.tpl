{{/* The nodes of a pool, and what they cost. */}}

{{/* A place as YAML: labels, products, expressions, tolerations, instanceType, hourlyPrice. Arguments: root, name, pool. */}}
{{- define "devbench.place" -}}
{{- $preset := .root.Files.Get (printf "presets/%s.yaml" .pool.preset) | fromYaml -}}
{{- $common := .root.Files.Get "presets/common.yaml" | fromYaml -}}
{{- $backend := include "devbench.backend" . | fromYaml -}}
{{- $scope := dict "name" .name "pool" .pool "preset" $preset "common" $common "backend" $backend "bare" (hasKey $preset "bare") -}}
{{- $_ := set $scope "kind" (include "devbench.place.kind" $scope | fromYaml) -}}
{{- $type := default (default "" $scope.kind.instanceType) .pool.instanceType -}}
{{- $_ = set $scope "type" (eq $type "any" | ternary "" $type) -}}
labels:
  {{- include "devbench.place.labels" $scope | nindent 2 }}
products:
  {{- include "devbench.place.products" $scope | nindent 2 }}
expressions:
  {{- include "devbench.place.expressions" $scope | nindent 2 }}
tolerations:
  {{- include "devbench.place.tolerations" $scope | nindent 2 }}
instanceType: {{ $scope.type | quote }}
hourlyPrice: {{ include "devbench.place.price" $scope }}
{{- end -}}

{{/* The preset's row for the pool's kind of node. Arguments: name, pool, preset, backend, bare. */}}
{{- define "devbench.place.kind" -}}
{{- $kind := default dict .preset.cpu -}}
{{- if and .backend.gpu (not .bare) -}}
{{- $accelerators := default dict .preset.accelerators -}}
{{- if not (hasKey $accelerators .pool.accelerator) -}}
{{- fail (printf "pools.%s.accelerator is '%s', but the preset %s has only %s. For another GPU, use preset none with your own nodeSelector" .name .pool.accelerator .pool.preset (keys $accelerators | sortAlpha | join ", ")) -}}
{{- end -}}
{{- $kind = index $accelerators .pool.accelerator -}}
{{- end -}}
{{- toYaml $kind -}}
{{- end -}}

{{/* Labels that the nodes have. Arguments: pool, common, kind, type. */}}
{{- define "devbench.place.labels" -}}
{{- $type := empty .type | ternary dict (dict "node.kubernetes.io/instance-type" .type) -}}
{{- include "devbench.merge" (list .common.nodeSelector (default dict .kind.nodeSelector) .pool.nodeSelector $type) -}}
{{- end -}}

{{/* Expressions for the GPU models that the nodes have, if labels do not say it. Arguments: pool, kind, backend. */}}
{{- define "devbench.place.products" -}}
{{- $expressions := list -}}
{{- with .kind.products -}}
{{- $products := . -}}
{{- if $.pool.allowSharedGpu }}{{ range . }}{{ $products = append $products (printf "%s-SHARED" .) }}{{ end }}{{ end -}}
{{- $expressions = append $expressions (dict "key" $.backend.productLabel "operator" "In" "values" $products) -}}
{{- end -}}
{{- toYaml $expressions -}}
{{- end -}}

{{/* Expressions that the nodes match besides. Arguments: pool, common, kind, backend, bare. */}}
{{- define "devbench.place.expressions" -}}
{{- $expressions := list -}}
{{- if .bare -}}
{{- else if not .backend.gpu -}}
{{- $expressions = concat $expressions (include "devbench.place.cpu" .common | fromYamlArray) -}}
{{- else if not .pool.allowSharedGpu -}}
{{- $expressions = concat $expressions (default list .common.notShared) -}}
{{- with .kind.shared }}{{ $expressions = append $expressions (dict "key" $.backend.productLabel "operator" "NotIn" "values" .) }}{{ end -}}
{{- end -}}
{{- toYaml $expressions -}}
{{- end -}}

{{/* Expressions that only nodes without a GPU match. The argument is presets/common.yaml. */}}
{{- define "devbench.place.cpu" -}}
{{- $expressions := list (dict "key" "node.kubernetes.io/instance-type" "operator" "NotIn" "values" .typesNotForCpu) -}}
{{- range .notForCpu }}{{ $expressions = append $expressions (dict "key" . "operator" "DoesNotExist") }}{{ end -}}
{{- toYaml $expressions -}}
{{- end -}}

{{/* Tolerations. Arguments: pool, preset, backend, bare. */}}
{{- define "devbench.place.tolerations" -}}
{{- $tolerations := .pool.tolerations -}}
{{- if and .backend.gpu (not .bare) -}}
{{- $taint := dict "key" .backend.resource "operator" "Exists" "effect" "NoSchedule" -}}
{{- $tolerations = concat $tolerations (list $taint) (default list .preset.gpuTolerations) -}}
{{- end -}}
{{- if .pool.spot }}{{ $tolerations = concat $tolerations (default list .preset.spotTolerations) }}{{ end -}}
{{- toYaml $tolerations -}}
{{- end -}}

{{/* The price per hour, or 0. Refuse a pod that its node cannot hold. Arguments: name, pool, preset, type. */}}
{{- define "devbench.place.price" -}}
{{- $listed := default dict (index (default dict .preset.instanceTypes) .type) -}}
{{- if and $listed.vcpus (ge (int .pool.cpu) (int $listed.vcpus)) -}}
{{- fail (printf "pools.%s.cpu is %d, but a %s has %d vCPUs and the node needs one of them. Use at most %d" .name (int .pool.cpu) .type (int $listed.vcpus) (sub (int $listed.vcpus) 1)) -}}
{{- end -}}
{{- $priced := or (not $listed.accelerator) (eq (default "" $listed.accelerator) .pool.accelerator) -}}
{{- default 0 (default (and $priced (not .pool.spot) $listed.hourlyPrice) .pool.hourlyPrice) -}}
{{- end -}}

{{/* Affinity of a run: the user's, and in each of its terms what the chart requires. Node labels are an affinity too,
because Kueue writes the nodeSelector. Arguments: the scope of a run. */}}
{{- define "devbench.run.affinity" -}}
{{- $required := "requiredDuringSchedulingIgnoredDuringExecution" -}}
{{- $affinity := deepCopy .pool.affinity -}}
{{- $apart := list -}}
{{- if .pool.exclusiveNode -}}
{{- $selector := dict "matchExpressions" (list (dict "key" "devbench/pool" "operator" "Exists")) -}}
{{- $apart = list (dict "topologyKey" "kubernetes.io/hostname" "namespaceSelector" dict "labelSelector" $selector) -}}
{{- end -}}
{{- if .workers }}{{ $apart = concat $apart (include "devbench.workers.apart" . | fromYamlArray) }}{{ end -}}
{{- if $apart -}}
{{- $others := default dict $affinity.podAntiAffinity -}}
{{- $_ := set $affinity "podAntiAffinity" (set $others $required (concat (default list (index $others $required)) $apart)) -}}
{{- end -}}
{{- $labels := list -}}
{{- range $key, $value := .place.labels }}{{ $labels = append $labels (dict "key" $key "operator" "In" "values" (list $value)) }}{{ end -}}
{{- $expressions := concat $labels .place.products .place.expressions -}}
{{- $terms := list -}}
{{- range dig "nodeAffinity" $required "nodeSelectorTerms" (list dict) $affinity -}}
{{- $terms = append $terms (set . "matchExpressions" (concat (default list .matchExpressions) $expressions)) -}}
{{- end -}}
{{- if $expressions -}}
{{- $node := set (default dict $affinity.nodeAffinity) $required (dict "nodeSelectorTerms" $terms) -}}
{{- $_ := set $affinity "nodeAffinity" $node -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end -}}
