{{/* Names, labels, images, and the address of the hub. */}}

{{- define "devbench.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 25 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 25 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 25 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Selector labels of a component. Arguments: root, component. */}}
{{- define "devbench.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of an object other than a pod. They include versions, which must not change on pods. Arguments: root, component. */}}
{{- define "devbench.labels" -}}
{{ include "devbench.selector" . }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: devbench
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name (.root.Chart.Version | replace "+" "_") }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* An image. Arguments: root, backend (or "hub"), override. */}}
{{- define "devbench.image" -}}
{{- $image := .root.Values.image -}}
{{- $repository := default $image.repository .override.repository -}}
{{- if and $image.registry (not .override.repository) }}{{ $repository = printf "%s/%s" $image.registry $repository }}{{ end -}}
{{- $tag := default (empty $image.tag | ternary .backend (printf "%s-%s" $image.tag .backend)) .override.tag -}}
{{- if .override.digest -}}
{{- printf "%s@%s" $repository .override.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository $tag -}}
{{- end -}}
{{- end -}}

{{- define "devbench.hub.url" -}}
{{- if .Values.hub.enabled -}}
http://{{ include "devbench.fullname" . }}-hub.{{ .Release.Namespace }}.svc:{{ .Values.hub.service.port }}
{{- else -}}
{{- required "hub.url is required if hub.enabled is false" .Values.hub.url -}}
{{- end -}}
{{- end -}}

{{- define "devbench.token.secret" -}}
{{- default (printf "%s-hub-token" (include "devbench.fullname" .)) .Values.hub.auth.existingSecret -}}
{{- end -}}

{{/* Whether to create an object. "auto" asks whether the cluster has its kind. Arguments: root, enabled, kind. */}}
{{- define "devbench.wanted" -}}
{{- if kindIs "bool" .enabled -}}
{{- if .enabled }}true{{ end -}}
{{- else if .root.Capabilities.APIVersions.Has (printf "monitoring.coreos.com/v1/%s" .kind) -}}
true
{{- end -}}
{{- end -}}

{{/* A setting's value for an environment variable: lists with commas, pairs as name=value. */}}
{{- define "devbench.written" -}}
{{- if kindIs "slice" . -}}
{{- join "," . -}}
{{- else if kindIs "map" . -}}
{{- $pairs := list -}}
{{- range $name, $value := . }}{{ $pairs = append $pairs (printf "%s=%s" $name (include "devbench.written" $value)) }}{{ end -}}
{{- join "," $pairs -}}
{{- else if and (kindIs "float64" .) (eq (float64 (int64 .)) .) -}}
{{- int64 . -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{/* Settings as environment variables. Arguments: prefix, settings. */}}
{{- define "devbench.settings.env" -}}
{{- range $name, $value := .settings }}
{{- if not (kindIs "invalid" $value) }}
- name: {{ $.prefix }}{{ upper $name }}
  value: {{ include "devbench.written" $value | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "devbench.plain.env" -}}
{{- range $name, $value := . }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{/* Pod security context of the restricted level. */}}
{{- define "devbench.pod.security" -}}
runAsNonRoot: true
runAsUser: {{ .Values.security.runAsUser | int64 }}
runAsGroup: {{ .Values.security.runAsGroup | int64 }}
fsGroup: {{ .Values.security.fsGroup | int64 }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* Container security context of the restricted level. */}}
{{- define "devbench.container.security" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
privileged: false
readOnlyRootFilesystem: true
{{- end -}}

{{- define "devbench.pull.secrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The address and the token of the hub, as variables and as a volume. The address comes from a ConfigMap, so that a
change to the hub's values starts no run. */}}
{{- define "devbench.hub.env" -}}
- name: DEVBENCH_HUB
  valueFrom:
    configMapKeyRef:
      name: {{ include "devbench.fullname" . }}-hub-address
      key: url
- name: DEVBENCH_HUB_TOKEN_FILE
  value: /etc/devbench/hub/{{ .Values.hub.auth.tokenKey }}
{{- end -}}

{{/* The settings of the hub. Secrets are files, except the database URL, which holds its password. */}}
{{- define "devbench.hub.server.env" -}}
{{- with .Values.hub }}
- name: DEVBENCH_HUB_HOST
  value: 0.0.0.0
- name: DEVBENCH_HUB_PORT
  value: "8080"
- name: DEVBENCH_HUB_TOKENS_FILE
  value: /etc/devbench/hub/{{ .auth.tokenKey }}
{{- if .auth.readersSecret }}
- name: DEVBENCH_HUB_READERS_FILE
  value: /etc/devbench/readers/{{ .auth.readersKey }}
{{- end }}
- name: DEVBENCH_HUB_DATABASE
{{- if .database.existingSecret }}
  valueFrom:
    secretKeyRef:
      name: {{ .database.existingSecret }}
      key: {{ .database.key }}
{{- else }}
  value: /var/lib/devbench/hub.db
{{- end }}
{{- include "devbench.settings.env" (dict "prefix" "DEVBENCH_HUB_" "settings" .settings) }}
{{- end }}
{{- end -}}

{{- define "devbench.hub.volume" -}}
- name: hub-token
  secret:
    secretName: {{ include "devbench.token.secret" . }}
    defaultMode: 0440
    items:
      - key: {{ .Values.hub.auth.tokenKey }}
        path: {{ .Values.hub.auth.tokenKey }}
{{- end -}}

{{- define "devbench.placing" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
