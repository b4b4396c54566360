#!/bin/sh
# Claims a cluster of a hotspare pool for a CI job, and releases it. Copy it into your repository.
#
#   cluster.sh claim              create the claim, wait for its cluster, write its kubeconfig; if that fails, release the claim
#   cluster.sh release            delete the claim; hotspare destroys the cluster
#   cluster.sh run COMMAND...     claim, run the command with $KUBECONFIG, release whatever happens
#   cluster.sh token              print the token of the CI system as an ExecCredential; kubectl calls it
#
# It needs kubectl 1.28 or newer and base64, and reads these variables:
#
#   POOL                the ClusterPool (required)
#   CLAIM               the name of the claim, another one for each job (required)
#   HUB_NAMESPACE       the namespace of the pool; default: that of the kubeconfig
#   LIFETIME            hotspare releases the claim after this time; default: 2h
#   TIMEOUT             the longest time to wait for a cluster; default: 60m
#   PRIORITY            the priority of the claim while it waits, in minutes; default: none
#   CLUSTER_KUBECONFIG  the file to write; default: cluster.kubeconfig
#   HEARTBEAT_PID       the process that uses the cluster: if it dies, hotspare releases the claim. A process in
#                       the background renews the heartbeat of the claim while it lives; default: none
#                       with "claim", and this script with "run"
#   HEARTBEAT_TIMEOUT   how long after its death, in seconds or minutes, at least 10s; default: 90s
#   REPORT_INTERVAL     the seconds after which the script looks again why the claim waits, and prints it; default: 15
#
# With a stored secret:
#
#   HUB_KUBECONFIG      the kubeconfig of the hub; default: what kubectl uses
#
# Without one, if the hub accepts the tokens of the CI system (docs/ci/tokens.md):
#
#   HUB                 the URL of the hub's API
#   HUB_CA              a file with the certificate of the hub's CA; default: those of the system
#   HUB_AUDIENCE        the audience of the tokens that GitHub Actions issues; default: hotspare. curl is needed
#   HUB_TOKEN           the token, where the CI system sets one: it must be valid until the job ends
set -eu

fail() {
  echo "cluster.sh: $1" >&2
  exit 1
}

# require fails unless a variable is set.
require() { eval "[ -n \"\${$1:-}\" ]" || fail "$1 is not set: the head of this script says what it is"; }

# name prints CLAIM as the name of an object.
name() { printf %s "$CLAIM" | tr '[:upper:]' '[:lower:]' | tr -c 'a-z0-9-' '-' | sed 's/^-*//; s/-*$//'; }

# hub runs kubectl on the hub, in the namespace of the pool.
hub() { in_namespace "${HUB_NAMESPACE:-}" "$@"; }

# in_namespace runs kubectl on the hub, in a namespace. With replace=exec, kubectl replaces the shell.
in_namespace() {
  ns=$1
  shift
  ${replace:-} kubectl ${HUB_KUBECONFIG:+--kubeconfig "$HUB_KUBECONFIG"} ${ns:+--namespace "$ns"} "$@"
}

# only_new removes a file or link, and has a subshell write only new files that nobody else can read: an existing file would
# keep its mode and its owner, and a link leads to another file.
only_new() { umask 077 && rm -f "$1" && set -C; }

# log_in writes a kubeconfig with which kubectl calls this script for tokens. No token is in it.
log_in() {
  [ -n "${HUB:-}" ] || return 0
  HUB_KUBECONFIG=$CLUSTER_KUBECONFIG.hub
  case $0 in /*) self=$0 ;; *) self=$PWD/$0 ;; esac
  (only_new "$HUB_KUBECONFIG" && cat > "$HUB_KUBECONFIG") <<YAML
apiVersion: v1
kind: Config
current-context: hub
contexts:
- name: hub
  context: {cluster: hub, user: ci}
clusters:
- name: hub
  cluster:
    server: $HUB
${HUB_CA:+    certificate-authority: $(absolute "$HUB_CA")}
users:
- name: ci
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: sh
      args: [$self, token]
      interactiveMode: Never
YAML
}

absolute() { case $1 in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; }

# token prints an ExecCredential. kubectl asks for another one when it expires, so a claim may wait for
# longer than a token lives.
token() {
  if [ -n "${ACTIONS_ID_TOKEN_REQUEST_URL:-}" ]; then
    answer=$(printf 'header = "Authorization: Bearer %s"' "$ACTIONS_ID_TOKEN_REQUEST_TOKEN" |
      curl -fsS --retry 5 --retry-connrefused -K - "$ACTIONS_ID_TOKEN_REQUEST_URL&audience=${HUB_AUDIENCE:-hotspare}") ||
      fail "GitHub issued no token: see above"
    jwt=$(printf %s "$answer" | sed -n 's/.*"value" *: *"\([^"]*\)".*/\1/p')
  else
    jwt=${HUB_TOKEN:-}
  fi
  [ -n "$jwt" ] || fail "no token: give the job the permission id-token: write on GitHub, or set HUB_TOKEN elsewhere"
  printf '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "%s"%s}}\n' "$jwt" "$(expiry "$jwt")"
}

# read_times sets exp and iat to when a token expires and when it was issued. They are empty if it does not say so.
read_times() {
  exp= iat=
  payload=$(printf %s "$1" | cut -d. -f2 | tr '_-' '/+')
  while [ $((${#payload} % 4)) != 0 ]; do payload=$payload=; done
  claims=$(printf %s "$payload" | base64 -d 2> /dev/null) || return 0
  exp=$(printf %s "$claims" | sed -n 's/.*"exp" *: *\([0-9]*\).*/\1/p')
  iat=$(printf %s "$claims" | sed -n 's/.*"iat" *: *\([0-9]*\).*/\1/p')
}

# expiry prints when a tenth of a token's life is left; nothing if it does not say how long it lives.
expiry() {
  read_times "$1"
  [ -n "$exp" ] && [ -n "$iat" ] || return 0
  at=$((exp - (exp - iat) / 10))
  stamp=$(date -u -d "@$at" +%Y-%m-%dT%H:%M:%SZ 2> /dev/null || date -u -r "$at" +%Y-%m-%dT%H:%M:%SZ) &&
    printf ', "expirationTimestamp": "%s"' "$stamp"
}

# check_token warns if HUB_TOKEN expires before the job has to end. GitLab says how long a job may run, in seconds from the
# beginning; elsewhere, LIFETIME is how long it may use the cluster. GitHub issues another token whenever kubectl needs one.
check_token() {
  [ -n "${HUB:-}" ] && [ -z "${ACTIONS_ID_TOKEN_REQUEST_URL:-}" ] || return 0
  read_times "${HUB_TOKEN:-}"
  now=$(date +%s)
  if [ -n "$exp" ] && [ "$exp" -le "$now" ]; then
    echo "cluster.sh: warning: the token of this job expired $(((now - exp) / 60)) minutes ago, by the clock of this machine. See docs/ci/tokens.md" >&2
    return 0
  fi
  if [ -n "${CI_JOB_TIMEOUT:-}" ]; then
    from=${iat:-$now} needed=$CI_JOB_TIMEOUT
  else
    from=$now needed=$(seconds "${LIFETIME:-2h}")
  fi
  [ -n "$exp" ] && [ -n "$needed" ] && [ $((exp - from)) -lt "$needed" ] || return 0
  echo "cluster.sh: warning: the token of this job expires in $(((exp - now) / 60)) minutes, and the job may run for longer. The hub then accepts neither" \
    "heartbeats nor the release of the claim: hotspare destroys the cluster of a claim with a heartbeat $HEARTBEAT_TIMEOUT later, although the job uses it." \
    "Use a token that is valid until the job ends: on GitLab, set timeout of the job. See docs/ci/tokens.md" >&2
}

# seconds prints a duration, such as 1h30m, in seconds; nothing if it is not one.
seconds() {
  case $1 in *[!0-9hms]*) return 0 ;; esac
  (echo "$(($(echo "$1" | sed 's/h/ * 3600 + /; s/m/ * 60 + /; s/s/ + /; s/$/ 0/')))") 2> /dev/null || true
}

# get_cluster creates the claim, waits for its cluster, and writes the cluster's kubeconfig.
get_cluster() {
  require POOL
  case ${HEARTBEAT_TIMEOUT%[sm]} in
  *[!0-9]* | '' | "$HEARTBEAT_TIMEOUT") fail "HEARTBEAT_TIMEOUT is $HEARTBEAT_TIMEOUT: write seconds or minutes, as in 90s or 2m" ;;
  esac
  [ "$(seconds "$HEARTBEAT_TIMEOUT")" -ge 10 ] || fail "HEARTBEAT_TIMEOUT is $HEARTBEAT_TIMEOUT, and the hub ignores a heartbeat of less than 10s: set 10s or more"
  check_token
  # The claim names this account as a subject: that is its right to read the cluster's kubeconfig.
  me=$(hub auth whoami -o jsonpath='{.status.userInfo.username}') ||
    fail "kubectl cannot log in to the hub${HUB:+ $HUB}: see its error above. If the hub refuses the token, that may be wrong, expired or for another hub: see docs/ci/README.md and docs/ci/tokens.md"
  if [ -n "$HEARTBEAT_PID" ] && ! hub auth can-i patch clusterclaims.hive.openshift.io > /dev/null; then
    no_heartbeat="cluster.sh: $me may not patch claims, so this claim has no heartbeat: if this job dies, hotspare releases it after ${LIFETIME:-2h}"
    HEARTBEAT_PID=
  fi
  created=yes # an interrupted request may have created it
  answer=$(
    hub create -f - 2>&1 <<YAML
apiVersion: hive.openshift.io/v1
kind: ClusterClaim
metadata:
  name: '$CLAIM'
  annotations:
    ${HEARTBEAT_PID:+hotspare.io/heartbeat-timeout: $HEARTBEAT_TIMEOUT}
    ${PRIORITY:+hotspare.io/priority: '$PRIORITY'}
spec:
  clusterPoolName: '$POOL'
  lifetime: ${LIFETIME:-2h}
  subjects:
  - kind: User
    name: '$(echo "$me" | sed "s/'/''/g")'
YAML
  ) || {
    case $answer in
    *AlreadyExists*) trap - EXIT && answer="$answer. Another job may use that claim: set CLAIM to a name that no other job has" ;;
    *Forbidden*) trap - EXIT && answer="$answer: if a right is missing, bind Role claims to User $me: see docs/ci/README.md" ;;
    esac
    fail "$answer"
  }
  echo "$answer"
  [ -z "$no_heartbeat" ] || echo "$no_heartbeat" >&2
  if [ -n "$HEARTBEAT_PID" ]; then
    if [ "$command" = run ]; then
      (exec < /dev/null > /dev/null && renew_heartbeat) &
    else # it outlives this script, whose output it must not keep open: a CI system waits until that is closed
      (only_new "$CLUSTER_KUBECONFIG.log" && : > "$CLUSTER_KUBECONFIG.log")
      (exec < /dev/null > /dev/null 2>> "$CLUSTER_KUBECONFIG.log" && renew_heartbeat) &
    fi
    heart=$!
  fi
  # In the background, because a shell runs its traps only after a command in the foreground has ended.
  (replace=exec && hub wait --for=condition=ClusterRunning "clusterclaim/$CLAIM" --timeout "${TIMEOUT:-60m}") &
  child=$!
  (trap - EXIT && report_waiting) &
  reporter=$!
  wait "$child" || {
    why=$(end_message)
    why=${why:-$(pending_message)}
    fail "claim $CLAIM has no running cluster${why:+: $why}"
  }
  kill "$reporter" 2> /dev/null || true
  child= reporter=
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

# pending_message prints why the claim has no cluster yet.
pending_message() { hub get clusterclaim "$CLAIM" -o jsonpath='{.status.conditions[?(@.type=="Pending")].message}' 2> /dev/null || true; }

# end_message prints why the claim will have no running cluster any more; nothing if it may still get one.
end_message() {
  state=$(hub get clusterclaim "$CLAIM" -o jsonpath='{.metadata.deletionTimestamp}/{.status.conditions[?(@.type=="ClusterRunning")].reason}' 2>&1) || true
  case $state in
  *NotFound*"\"$CLAIM\" not found"*) echo "it was released, and does not exist any more" ;;
  [0-9]*Z/*) echo "it was released, and is being deleted" ;;
  */ClusterDeleted) echo "its cluster was deleted" ;;
  esac
}

# report_waiting prints why the claim waits, whenever that has changed, until the kubectl that waits for the cluster has ended. It
# ends that kubectl if the claim will not get a cluster any more, or if this script is killed.
report_waiting() {
  printed=
  while sleep "${REPORT_INTERVAL:-15}" > /dev/null 2>&1; do # it may outlive this process, and must not keep the output open
    kill -0 "$child" 2> /dev/null || return 0 # a process that has just begun may miss the signal that ends it
    if ! kill -0 $$ 2> /dev/null; then
      kill "$child" 2> /dev/null || true
      return
    fi
    if [ -n "$(end_message)" ]; then
      kill "$child" 2> /dev/null || true
      return
    fi
    why=$(pending_message)
    [ -z "$why" ] || [ "$why" = "$printed" ] || echo "claim $CLAIM waits: $why"
    printed=$why
  done
}

# renew_heartbeat renews the heartbeat of the claim four times in its timeout, and more often while that fails, while process
# $HEARTBEAT_PID lives and the claim exists, and reports what fails.
renew_heartbeat() {
  trap - EXIT
  interval=$(($(seconds "$HEARTBEAT_TIMEOUT") / 4)) failures=0 reported=
  while kill -0 "$HEARTBEAT_PID" 2> /dev/null && { [ "$command" = run ] || [ -e "$CLUSTER_KUBECONFIG.log" ]; }; do # "release" removes the file
    if answer=$(exec 2>&1 && hub annotate --overwrite clusterclaim "$CLAIM" "hotspare.io/heartbeat=$(date +%s)" -o jsonpath='{.metadata.deletionTimestamp}' --request-timeout "${interval}s"); then
      case $answer in *[0-9]Z) report "claim $CLAIM was released, perhaps because its lifetime (LIFETIME: ${LIFETIME:-2h}) has elapsed, and its cluster is being destroyed" && return ;; esac
      [ -z "$reported" ] || report "the hub accepts the heartbeat of claim $CLAIM again"
      failures=0 reported= pause=$interval
    else
      report_failure
      pause=$((interval > 5 ? interval / 3 : 1))
    fi
    sleep "$pause" 2> /dev/null # it may outlive this process, and must not keep the output of the script open
  done
}

# report_failure reports a renewal that has failed: at once if the hub refuses it, after the second one if the hub may be
# restarting, and then every tenth one.
report_failure() {
  failures=$((failures + 1)) patience=2 hint=
  case $answer in
  *"\"$CLAIM\" not found"*) report "claim $CLAIM does not exist any more, and its cluster is destroyed" && exit ;;
  *Unauthorized*) patience=1 hint=". The token of this job may have expired: see docs/ci/tokens.md" ;;
  *Forbidden*) patience=1 ;;
  esac
  if [ -z "$reported" ] && [ "$failures" -ge "$patience" ] || [ $((failures % 10)) = 0 ]; then
    reported=yes
    report "the heartbeat of claim $CLAIM was not renewed: $(echo "$answer" | tail -n 1). hotspare destroys the cluster $HEARTBEAT_TIMEOUT after the last heartbeat$hint"
  fi
}

# report prints a message on standard error. With "claim", that is a file which "release" prints: on Linux, the message is also
# written to the standard error of process $HEARTBEAT_PID, at once.
report() {
  message="cluster.sh: $(date -u +%H:%M:%SZ): $1"
  echo "$message" >&2
  [ "$command" = run ] || (echo "$message" >> "/proc/$HEARTBEAT_PID/fd/2") 2> /dev/null &
}

write_kubeconfig() {
  secret=$(in_namespace "$cluster" get clusterdeployment "$cluster" -o jsonpath='{.spec.clusterMetadata.adminKubeconfigSecretRef.name}') &&
    kubeconfig=$(in_namespace "$cluster" get secret "$secret" -o jsonpath='{.data.kubeconfig}') &&
    (only_new "$CLUSTER_KUBECONFIG" && printf %s "$kubeconfig" | base64 -d > "$CLUSTER_KUBECONFIG")
}

release() {
  [ -z "$heart$reporter" ] || kill $heart $reporter 2> /dev/null || true
  [ ! -s "$CLUSTER_KUBECONFIG.log" ] || cat "$CLUSTER_KUBECONFIG.log" >&2
  rm -f "$CLUSTER_KUBECONFIG.log"
  status=0
  [ -z "$created" ] || hub delete clusterclaim "$CLAIM" --ignore-not-found --wait=false || status=$?
  rm -f "$CLUSTER_KUBECONFIG" "$CLUSTER_KUBECONFIG.hub"
  return "$status"
}

claim() {
  release_at_exit
  get_cluster
  trap - EXIT INT TERM
}

run() {
  [ $# -gt 0 ] || fail "run needs a command: cluster.sh run COMMAND..."
  HEARTBEAT_PID=${HEARTBEAT_PID:-$$}
  release_at_exit
  get_cluster
  # The command keeps the standard input of this script: a shell gives /dev/null to what it runs in the background.
  if (: <&0) 2> /dev/null; then exec 3<&0; else exec 3< /dev/null; fi
  KUBECONFIG=$CLUSTER_KUBECONFIG "$@" <&3 3<&- &
  child=$!
  wait "$child"
}

release_at_exit() {
  created=
  trap release EXIT
  trap 'stop 130' INT
  trap 'stop 143' TERM
}

stop() {
  [ -z "$child" ] || kill "$child" 2> /dev/null || true
  exit "$1"
}

# heart renews the heartbeat, reporter prints why the claim waits, child is the process that the script waits for, and created
# is empty until there may be a claim. no_heartbeat says why the claim has no heartbeat.
heart= reporter= child= created=yes no_heartbeat=
HEARTBEAT_PID=${HEARTBEAT_PID:-}
HEARTBEAT_TIMEOUT=${HEARTBEAT_TIMEOUT:-90s}
CLUSTER_KUBECONFIG=${CLUSTER_KUBECONFIG:-$PWD/cluster.kubeconfig}
case "${1:-}" in
claim | release | run)
  require CLAIM
  cleaned=$(name)
  [ -n "$cleaned" ] || fail "CLAIM is $CLAIM: it has none of a-z, A-Z and 0-9"
  CLAIM=$cleaned
  log_in && command=$1 && shift && "$command" "$@"
  ;;
token) token ;;
*) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
