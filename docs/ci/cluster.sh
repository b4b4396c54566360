#!/bin/sh
# Claims a cluster of a hotspare pool for a CI job, and releases it. Copy it into your repository.
#
#   cluster.sh claim              create the claim, wait for its cluster, write the cluster's kubeconfig
#   cluster.sh release            delete the claim; hotspare destroys the cluster
#   cluster.sh run COMMAND...     claim, run the command with $KUBECONFIG, release whatever happens
#
# It needs kubectl 1.28 or newer and base64, and reads these variables:
#
#   POOL                the ClusterPool (required)
#   CLAIM               the name of the claim, another one for each job (required)
#   HUB_KUBECONFIG      the kubeconfig of the hub; default: what kubectl uses
#   HUB_NAMESPACE       the namespace of the pool; default: that of the kubeconfig
#   LIFETIME            hotspare releases the claim after this time; default: 2h
#   TIMEOUT             the longest time to wait for a cluster; default: 60m
#   CLUSTER_KUBECONFIG  the file to write; default: cluster.kubeconfig
set -eu

CLAIM=$(printf %s "${CLAIM:?}" | tr '[:upper:]' '[:lower:]' | tr -c 'a-z0-9-' '-')
CLUSTER_KUBECONFIG=${CLUSTER_KUBECONFIG:-$PWD/cluster.kubeconfig}

hub() {
  kubectl ${HUB_KUBECONFIG:+--kubeconfig "$HUB_KUBECONFIG"} ${HUB_NAMESPACE:+--namespace "$HUB_NAMESPACE"} "$@"
}

claim() {
  # The claim names this account as a subject: that is its right to read the cluster's kubeconfig.
  me=$(hub auth whoami -o jsonpath='{.status.userInfo.username}')
  hub create -f - <<YAML
apiVersion: hive.openshift.io/v1
kind: ClusterClaim
metadata:
  name: $CLAIM
spec:
  clusterPoolName: ${POOL:?}
  lifetime: ${LIFETIME:-2h}
  subjects:
  - kind: User
    name: $me
YAML
  hub wait --for=condition=ClusterRunning "clusterclaim/$CLAIM" --timeout "${TIMEOUT:-60m}"
  cluster=$(hub get clusterclaim "$CLAIM" -o jsonpath='{.spec.namespace}')
  for try in 1 2 3 4 5 6 7 8 9 10; do # an API server may need a moment to apply the new Role
    if write_kubeconfig; then
      echo "cluster $cluster: its kubeconfig is $CLUSTER_KUBECONFIG"
      return
    fi
    sleep "$try"
  done
  return 1
}

write_kubeconfig() {
  secret=$(in_cluster get clusterdeployment "$cluster" -o jsonpath='{.spec.clusterMetadata.adminKubeconfigSecretRef.name}') &&
    kubeconfig=$(in_cluster get secret "$secret" -o jsonpath='{.data.kubeconfig}') &&
    (umask 077 && printf %s "$kubeconfig" | base64 -d > "$CLUSTER_KUBECONFIG")
}

# in_cluster runs kubectl on the hub, in the namespace of the cluster.
in_cluster() { kubectl ${HUB_KUBECONFIG:+--kubeconfig "$HUB_KUBECONFIG"} --namespace "$cluster" "$@"; }

release() {
  hub delete clusterclaim "$CLAIM" --ignore-not-found --wait=false
  rm -f "$CLUSTER_KUBECONFIG"
}

run() {
  child=
  trap release EXIT
  trap 'stop 130' INT
  trap 'stop 143' TERM
  claim
  KUBECONFIG=$CLUSTER_KUBECONFIG "$@" &
  child=$!
  wait "$child"
}

stop() {
  [ -z "$child" ] || kill "$child"
  exit "$1"
}

case "${1:-}" in
claim) claim ;;
release) release ;;
run) shift && run "$@" ;;
*) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
