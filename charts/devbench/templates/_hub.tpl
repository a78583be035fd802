{{/* The address, the token and the settings of the hub. */}}

{{- define "devbench.hub.url" -}}
{{- if .Values.hub.enabled -}}
http://{{ include "devbench.fullname" . }}-hub.{{ .Release.Namespace }}.svc:{{ int .Values.hub.service.port }}
{{- else -}}
{{- required "hub.url is required if hub.enabled is false" .Values.hub.url -}}
{{- end -}}
{{- end -}}

{{- define "devbench.token.secret" -}}
{{- default (printf "%s-hub-token" (include "devbench.fullname" .)) .Values.hub.auth.existingSecret -}}
{{- end -}}

{{/* Whether something outside the cluster's pods is to reach the hub. */}}
{{- define "devbench.hub.published" -}}
{{- with .Values.hub -}}
{{- if or .ingress.enabled .httpRoute.enabled (ne .service.type "ClusterIP") }}true{{ end -}}
{{- end -}}
{{- end -}}

{{/* The address and the token of the hub, as variables. The address comes from a ConfigMap, so that a change to the hub's
values does not concern runs. */}}
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
- name: HOME
  value: /tmp
- name: DEVBENCH_HUB_HOST
  value: "::" # IPv6 and IPv4
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
      name: {{ .database.existingSecret | quote }}
      key: {{ .database.key | quote }}
{{- else }}
  value: /var/lib/devbench/hub.db
{{- end }}
{{- $settings := deepCopy .settings }}
{{- if .settings.allowed_hosts }}{{/* runs, the watcher and the test use the name of the Service */}}
{{- $own := printf "%s-hub.%s.svc" (include "devbench.fullname" $) $.Release.Namespace }}
{{- $_ := set $settings "allowed_hosts" (printf "%s,%s" (include "devbench.written" .settings.allowed_hosts) $own) }}
{{- end }}
{{- include "devbench.settings.env" (dict "prefix" "DEVBENCH_HUB_" "settings" $settings) }}
{{- end }}
{{- end -}}

{{- define "devbench.hub.volume" -}}
- name: hub-token
  secret:
    secretName: {{ include "devbench.token.secret" . | quote }}
    defaultMode: 0440
    items:
      - key: {{ .Values.hub.auth.tokenKey | quote }}
        path: {{ .Values.hub.auth.tokenKey | quote }}
{{- end -}}

{{- define "devbench.hub.server.mounts" -}}
- {name: data, mountPath: /var/lib/devbench}
- {name: tmp, mountPath: /tmp}
- {name: hub-token, mountPath: /etc/devbench/hub, readOnly: true}
{{- if .Values.hub.auth.readersSecret }}
- {name: readers, mountPath: /etc/devbench/readers, readOnly: true}
{{- end }}
{{- end -}}

{{- define "devbench.hub.server.volumes" -}}
- name: tmp
  emptyDir: {}
{{ include "devbench.hub.volume" . }}
{{- with .Values.hub }}
{{- if .auth.readersSecret }}
- name: readers
  secret:
    secretName: {{ .auth.readersSecret | quote }}
    defaultMode: 0440
{{- end }}
- name: data
  {{- if and .persistence.enabled (not .database.existingSecret) }}
  persistentVolumeClaim:
    claimName: {{ default (printf "%s-results" (include "devbench.fullname" $)) .persistence.existingClaim }}
  {{- else }}
  emptyDir: {}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Variables, mounts and volumes of a pod that only speaks to the hub: the watcher and the test. */}}
{{- define "devbench.client.env" -}}
- name: HOME
  value: /tmp
{{ include "devbench.hub.env" . }}
{{- end -}}

{{- define "devbench.client.mounts" -}}
- {name: tmp, mountPath: /tmp}
- {name: hub-token, mountPath: /etc/devbench/hub, readOnly: true}
{{- end -}}

{{- define "devbench.client.volumes" -}}
- name: tmp
  emptyDir: {}
{{ include "devbench.hub.volume" . }}
{{- end -}}
