package claim

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

func TestLossOfASetsClustersIsExplained(t *testing.T) {
	for name, c := range map[string]struct {
		running, reason string
		deleted, beats  bool
		want            string
	}{
		"it has its clusters":          {"True", v1alpha1.ReasonClustersRunning, false, false, ""},
		"its command has released one": {"True", v1alpha1.ReasonClaimsReleased, false, false, ""},
		"one is hibernated":            {"False", v1alpha1.ReasonClustersNotRunning, false, false, ""},
		"all are released":             {"False", v1alpha1.ReasonClaimsReleased, false, false, "has no claims any more: they have expired or were released, and their clusters are being destroyed"},
		"one is deleted":               {"False", hivev1.ReasonClusterDeleted, false, false, "has lost clusters: why"},
		"it is deleted":                {"True", v1alpha1.ReasonClustersRunning, true, true, "was released by another user or process and its clusters are being destroyed"},
		"its heartbeat was missing":    {"True", v1alpha1.ReasonClustersRunning, true, false, "was released because the hub received no heartbeat for 90s, and its clusters are being destroyed"},
	} {
		set := &v1alpha1.ClaimSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{hivev1.AnnotationHeartbeatTimeout: "90s"}}}
		meta.SetStatusCondition(&set.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ClaimSetClustersRunning, Status: metav1.ConditionStatus(c.running), Reason: c.reason, Message: "why",
		})
		if c.deleted {
			set.DeletionTimestamp = &metav1.Time{Time: now}
		}
		if !c.beats {
			meta.SetStatusCondition(&set.Status.Conditions, metav1.Condition{Type: v1alpha1.ClaimSetHeartbeatMissing, Status: metav1.ConditionTrue, Reason: hivev1.ReasonHeartbeatOverdue})
		}
		got := ""
		if err := setLossError(set, true); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if err := setLossError(&v1alpha1.ClaimSet{}, false); err == nil || !strings.HasPrefix(err.Error(), "was released by another") {
		t.Errorf("a set that does not exist: %v", err)
	}
}

// A kubeconfig whose current context is not complete would give the command a context that does not work.
func TestAKubeconfigWithoutACurrentContextIsRefused(t *testing.T) {
	const complete = `{"apiVersion":"v1","kind":"Config","current-context":"c",
"clusters":[{"name":"a","cluster":{"server":"https://x"}}],"users":[{"name":"b","user":{}}],"contexts":[{"name":"c","context":{"cluster":"a","user":"b"}}]}`
	for name, c := range map[string]struct{ raw, want string }{
		"complete":        {complete, ""},
		"no context":      {strings.Replace(complete, `"current-context":"c",`, "", 1), "it has no current context with a cluster and a user"},
		"no such cluster": {strings.Replace(complete, `"cluster":"a"`, `"cluster":"x"`, 1), "it has no current context with a cluster and a user"},
		"no such user":    {strings.Replace(complete, `"user":"b"`, `"user":"x"`, 1), "it has no current context with a cluster and a user"},
	} {
		to, got := clientcmdapi.NewConfig(), ""
		if err := addContext(to, "claim", []byte(c.raw)); err != nil {
			got = err.Error()
		}
		if got != c.want || (got == "") != (to.Contexts["claim"] != nil) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
