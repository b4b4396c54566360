{{- define "hotspare.selector" -}}
app.kubernetes.io/name: hotspare
app.kubernetes.io/component: manager
{{- end }}
