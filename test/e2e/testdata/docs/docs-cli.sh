### On this machine
running
tidy
hotspare pool create dev --size 1 --running 1 --workers 0
hotspare claim create dev --name mine --wait
hotspare down
### Pools
tidy
### Plan without a hub
hotspare pool create dev --size 4 --dry-run > edited.yaml
### Simulate
{ echo created; for day in 02 03 04 05 06; do for hour in 08 09 10 11 14; do echo "2026-03-${day}T$hour:12:00Z"; done; done; } > claims.csv
### Inventories
tidy
apply <<'YAML'
apiVersion: hive.openshift.io/v1
kind: ClusterDeploymentCustomization
metadata: {name: foo, namespace: default}
spec: {installConfigPatches: [{op: replace, path: /metadata/name, value: foo}]}
---
apiVersion: hive.openshift.io/v1
kind: ClusterPool
metadata: {name: vsphere, namespace: default}
spec:
  size: 1
  baseDomain: example.com
  imageSetRef: {name: kubernetes}
  platform: {local: {}}
  annotations: {hive.openshift.io/fake-cluster: "true"}
  inventory: [{name: foo}]
YAML
### Claims
tidy
hotspare pool create dev --size 2 --running 1 --workers 0
printf '#!/bin/sh\nhotspare kubectl get nodes\n' > e2e.sh
chmod +x e2e.sh
### Clusters
hotspare claim create dev --name mine --wait
### Fleet
tidy
region
hotspare kubectl get fleetregions,instancetypes,serviceinstances -A -o yaml > fleet.yaml
