{{/* What all pods have in common. An entry of the user replaces the chart's entry of the same name. */}}

{{/* The list without entries that a later entry of the same key replaces. Arguments: entries, key. */}}
{{- define "devbench.unique" -}}
{{- $last := dict -}}
{{- range $place, $entry := .entries }}{{ $_ := set $last (index $entry $.key) $place }}{{ end -}}
{{- $unique := list -}}
{{- range $place, $entry := .entries -}}
{{- if eq $place (index $last (index $entry $.key)) }}{{ $unique = append $unique $entry }}{{ end -}}
{{- end -}}
{{- toYaml $unique -}}
{{- end -}}

{{/* Environment variables. Arguments: ours (YAML), theirs (by name: a text, or the content of valueFrom). */}}
{{- define "devbench.env" -}}
{{- $entries := .ours | fromYamlArray -}}
{{- range $name, $value := .theirs -}}
{{- $entries = append $entries (dict "name" $name (kindIs "map" $value | ternary "valueFrom" "value") $value) -}}
{{- end -}}
{{- include "devbench.unique" (dict "entries" $entries "key" "name") -}}
{{- end -}}

{{/* Labels and annotations of a pod. Pods of a mesh's data plane would be slower, and runs would never end, so they opt
out. Arguments: root, component, options, and optionally labels and annotations: the chart's own. */}}
{{- define "devbench.pod.metadata" -}}
{{- $values := .root.Values -}}
{{- $ours := dict "sidecar.istio.io/inject" "false" "istio.io/dataplane-mode" "none" "kuma.io/sidecar-injection" "disabled" -}}
{{- $selector := include "devbench.selector" . | fromYaml -}}
{{- $linkerd := dict "linkerd.io/inject" "disabled" -}}
labels:
  {{- include "devbench.merge" (list $ours $values.commonLabels .options.podLabels $selector (default dict .labels)) | nindent 2 }}
annotations:
  {{- include "devbench.merge" (list $linkerd (default dict .annotations) $values.commonAnnotations .options.podAnnotations) | nindent 2 }}
{{- end -}}

{{/* Fields of a pod's spec that do not place it. Arguments: root, options, account (the default service account), token
(whether the pod may use the API server), init (the chart's own init containers, YAML). */}}
{{- define "devbench.pod.spec" -}}
{{- $options := .options -}}
automountServiceAccountToken: {{ default false .token }}
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  {{- range $key := list "runAsUser" "runAsGroup" "fsGroup" }}
  {{- with index $.root.Values.security $key }}
  {{ $key }}: {{ int64 . }}
  {{- end }}
  {{- end }}
  {{- if .root.Values.security.fsGroup }}
  fsGroupChangePolicy: OnRootMismatch
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
{{- with default .account $options.serviceAccountName }}
serviceAccountName: {{ . | quote }}
{{- end }}
{{- with concat .root.Values.image.pullSecrets (default list (index .root.Values.global "imagePullSecrets")) }}
imagePullSecrets:
  {{- $secrets := list }}
  {{- range . }}{{ $secrets = append $secrets (kindIs "map" . | ternary . (dict "name" .)) }}{{ end }}
  {{- include "devbench.unique" (dict "entries" $secrets "key" "name") | nindent 2 }}
{{- end }}
{{- range $key := list "priorityClassName" "schedulerName" "dnsPolicy" "dnsConfig" "topologySpreadConstraints" }}
{{- with index $options $key }}
{{ $key }}:
  {{- if kindIs "string" . }} {{ . | quote }}{{ else }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end }}
{{- end }}
{{- with concat (default "[]" .init | fromYamlArray) $options.initContainers }}
initContainers:
  {{- include "devbench.unique" (dict "entries" . "key" "name") | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Container security context of the restricted level. */}}
{{- define "devbench.container.security" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
privileged: false
readOnlyRootFilesystem: true
{{- end -}}

{{/* Variables, mounts, pull policy and security of a container. Arguments: root, options, env and mounts (YAML). */}}
{{- define "devbench.container" -}}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
env:
  {{- include "devbench.env" (dict "ours" .env "theirs" .options.env) | nindent 2 }}
{{- with .options.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "devbench.container.security" . | nindent 2 }}
volumeMounts:
  {{- include "devbench.unique" (dict "entries" (concat (fromYamlArray .mounts) .options.extraVolumeMounts) "key" "mountPath") | nindent 2 }}
{{- end -}}

{{/* Volumes. Arguments: volumes (YAML), options. */}}
{{- define "devbench.volumes" -}}
volumes:
  {{- include "devbench.unique" (dict "entries" (concat (fromYamlArray .volumes) .options.extraVolumes) "key" "name") | nindent 2 }}
{{- end -}}

{{/* Where a pod that does not measure runs: on nodes that its image supports, and rather not beside a run or on a GPU
node. Arguments: root, options, and optionally spread: selector labels of pods to keep apart. */}}
{{- define "devbench.placing" -}}
{{- $common := .root.Files.Get "presets/common.yaml" | fromYaml -}}
nodeSelector:
  {{- include "devbench.merge" (list $common.nodeSelector .options.nodeSelector) | nindent 2 }}
{{- with .options.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
affinity:
  {{- if .options.affinity }}
  {{- toYaml .options.affinity | nindent 2 }}
  {{- else }}
  nodeAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        preference:
          matchExpressions:
            {{- include "devbench.place.cpu" $common | nindent 12 }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          namespaceSelector: {}
          labelSelector:
            matchExpressions:
              - {key: devbench/pool, operator: Exists}
      {{- with .spread }}
      - weight: 50
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- . | nindent 14 }}
      {{- end }}
  {{- end }}
{{- end -}}
