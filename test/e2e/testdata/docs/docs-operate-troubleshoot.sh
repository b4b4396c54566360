### Where to look
tidy
hotspare pool create dev --size 1 --running 1 --workers 0
hotspare claim create dev --name mine --wait
### A cluster is broken
cluster dev-x7k2p
### A data plane is not created
region
apply <<'YAML'
apiVersion: hotspare.io/v1alpha1
kind: DataPlane
metadata: {name: use1-a, namespace: fleet}
spec: {provider: local, region: use1, ownership: Registered, instanceTypes: [standard], clusterRef: {kubeconfigSecret: {name: a}}}
YAML
