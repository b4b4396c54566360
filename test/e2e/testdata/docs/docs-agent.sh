### What it may do
apply <<'YAML'
apiVersion: hotspare.io/v1alpha1
kind: DataPlaneAgent
metadata: {name: plane-1, namespace: default}
spec: {dataPlaneUID: "1"}
YAML
