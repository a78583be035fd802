{{/* Names, labels, annotations and images. */}}

{{/* A DNS label of at most 25 characters. What is cut or changed is replaced by a hash, so that two names stay two. */}}
{{- define "devbench.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- $full = default $full .Values.fullnameOverride -}}
{{- $label := regexReplaceAll "[^-a-z0-9]" $full "-" -}}
{{- if not (regexMatch "^[a-z]" $label) }}{{ $label = printf "d%s" $label }}{{ end -}}
{{- if and (eq $label $full) (le (len $full) 25) -}}
{{- $full -}}
{{- else -}}
{{- printf "%s-%s" ($label | trunc 16 | trimSuffix "-") ($full | sha256sum | trunc 8) -}}
{{- end -}}
{{- end -}}

{{/* Selector labels of a component. Arguments: root, component. */}}
{{- define "devbench.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Maps in one, as YAML. Later ones override earlier ones. The argument is a list of maps. */}}
{{- define "devbench.merge" -}}
{{- $all := dict -}}
{{- range . }}{{ range $key, $value := . }}{{ $_ := set $all $key $value }}{{ end }}{{ end -}}
{{- toYaml $all -}}
{{- end -}}

{{/* The labels and annotations of an object other than a pod. Its own override the common ones, which override the
chart's. Arguments: root, component, and optionally labels, annotations and ours, the chart's own annotations. */}}
{{- define "devbench.metadata" -}}
namespace: {{ .root.Release.Namespace | quote }}
labels:
  {{- $ours := dict "app.kubernetes.io/managed-by" .root.Release.Service "app.kubernetes.io/part-of" "devbench" -}}
  {{- $_ := set $ours "app.kubernetes.io/version" .root.Chart.AppVersion -}}
  {{- $_ = set $ours "helm.sh/chart" (printf "%s-%s" .root.Chart.Name (.root.Chart.Version | replace "+" "_")) -}}
  {{- $selector := include "devbench.selector" . | fromYaml -}}
  {{- include "devbench.merge" (list $ours .root.Values.commonLabels (default dict .labels) $selector) | nindent 2 }}
{{- $annotations := list (default dict .ours) .root.Values.commonAnnotations (default dict .annotations) }}
{{- with include "devbench.merge" $annotations | fromYaml }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* An image. Arguments: root, backend (or "hub"), override. A repository whose first part is a host keeps its registry. */}}
{{- define "devbench.image" -}}
{{- $image := .root.Values.image -}}
{{- $repository := default $image.repository .override.repository -}}
{{- $registry := default $image.registry (index .root.Values.global "imageRegistry") -}}
{{- $own := and (contains "/" $repository) (regexMatch "[.:]|^localhost$" (splitList "/" $repository | first)) -}}
{{- if and $registry (not $own) }}{{ $repository = printf "%s/%s" (trimSuffix "/" $registry) $repository }}{{ end -}}
{{- if .override.digest -}}
{{- printf "%s@%s" $repository .override.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default (printf "%s-%s" (default .root.Chart.AppVersion $image.tag) .backend) .override.tag) -}}
{{- end -}}
{{- end -}}

{{/* Whether to create an object. "auto" asks whether the cluster has its kind. Arguments: root, enabled, kind, and
optionally api: the version of its API. Default: that of the Prometheus operator. */}}
{{- define "devbench.wanted" -}}
{{- if kindIs "bool" .enabled -}}
{{- if .enabled }}true{{ end -}}
{{- else if .root.Capabilities.APIVersions.Has (printf "%s/%s" (default "monitoring.coreos.com/v1" .api) .kind) -}}
true
{{- end -}}
{{- end -}}
