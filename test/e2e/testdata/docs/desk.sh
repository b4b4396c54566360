# What the scripts beside this one are made of.

# running starts the hub if it does not run.
running() { hotspare status >/dev/null 2>&1 || hotspare up --detach >/dev/null; }

# tidy takes away what is there, so that the next commands find an empty hub.
tidy() {
  hotspare kubectl delete serviceinstances,fleetregions,dataplanes,claimsets,clusterclaims,clusterpools,powerschedules,poolpolicies,clusterbootstraps --all -A --timeout=180s >/dev/null
  hotspare kubectl delete clusterdeploymentcustomizations,machinepools --all -A --timeout=60s >/dev/null
}

# papers makes a pool dev of clusters without machines, and a claim mine on it.
papers() {
  tidy
  hotspare pool create dev --size 2 --running 1 --fake >/dev/null
  hotspare claim create dev --name mine --wait >/dev/null 2>&1
}

# apply hands its input to kubectl.
apply() { hotspare kubectl apply -f - >/dev/null; }

# region makes a fleet without data planes: region use1 in namespace fleet, and an order.
region() {
  apply <<'YAML'
apiVersion: v1
kind: Namespace
metadata: {name: fleet}
---
apiVersion: v1
kind: Namespace
metadata: {name: team-a}
---
apiVersion: hotspare.io/v1alpha1
kind: InstanceType
metadata: {name: standard}
spec:
  sizes: [{name: x1, units: 1}]
  nodesPerUnit: 1
  nodePools: [{platform: local, minNodes: 1, maxNodes: 4}]
---
apiVersion: hotspare.io/v1alpha1
kind: FleetRegion
metadata: {name: use1, namespace: fleet}
spec:
  provider: local
  region: use1
  instanceTypes: [{name: standard, slackUnits: 1}]
  scaleUp: {mode: "Off"}
  defaultNodePool: {minNodes: 1, maxNodes: 1}
  clusterSource: {claim: {pools: [{poolRef: {name: spares}}]}}
---
apiVersion: hotspare.io/v1alpha1
kind: ServiceInstance
metadata: {name: orders, namespace: team-a}
spec: {provider: local, region: use1, type: standard, size: x1}
YAML
}

# cluster makes a cluster without a pool, by that name, that lacks what its install needs.
cluster() {
  apply <<YAML
apiVersion: v1
kind: Namespace
metadata: {name: $1}
---
apiVersion: hive.openshift.io/v1
kind: ClusterDeployment
metadata: {name: $1, namespace: $1}
spec:
  clusterName: $1
  baseDomain: local.hotspare.io
  platform: {local: {}}
  provisioning:
    imageSetRef: {name: kubernetes}
    installConfigSecretRef: {name: missing}
YAML
}
