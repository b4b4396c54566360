package remote

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hotspare.io/hotspare/internal/bootstrap"
)

// jobAPI is the API of a cluster in which Job x runs.
type jobAPI struct {
	*applyAPI
	job  *batchv1.Job
	pods corev1.PodList
}

const jobPath = "/apis/batch/v1/namespaces/hotspare-bootstrap/jobs/x"

func (a *jobAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && r.URL.Path == jobPath && a.job != nil:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a.job)
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pods"):
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a.pods)
	default:
		a.applyAPI.ServeHTTP(w, r)
	}
}

func newJobAPI(t *testing.T) (*jobAPI, manifestApplier, bootstrap.Job) {
	t.Helper()
	a := &jobAPI{applyAPI: &applyAPI{refusals: map[string]metav1.Status{}, statuses: map[string]map[string]any{}}}
	server := httptest.NewTLSServer(a)
	t.Cleanup(server.Close)
	c, err := newSpokeClient([]byte(kubeconfig(server, token(secret))))
	if err != nil {
		t.Fatal(err)
	}
	env := manifest("v1", "Secret", "hotspare-bootstrap", "x")
	j := bootstrap.Job{Name: "x", Manifests: []bootstrap.Manifest{env, manifest("v1", "ConfigMap", "hotspare-bootstrap", "x")}, Temporary: []*unstructured.Unstructured{env.Object}}
	return a, manifestApplier{spokeClient: c, resources: map[schema.GroupVersionKind]metav1.APIResource{}}, j
}

func jobWith(typ batchv1.JobConditionType, reason string) *batchv1.Job {
	return &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: typ, Status: corev1.ConditionTrue, Reason: reason, Message: "hunter22"}}}}
}

func TestJobs(t *testing.T) {
	pod := func(phase corev1.PodPhase, age time.Duration, state corev1.ContainerState) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age))},
			Status:     corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{State: state}}},
		}
	}
	exit := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: "hunter22"}}
	}
	failed := []corev1.Pod{pod(corev1.PodFailed, time.Minute, exit(1)), pod(corev1.PodFailed, 0, exit(3)), pod(corev1.PodFailed, time.Hour, exit(2))}
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
	for name, tc := range map[string]struct {
		job     *batchv1.Job
		pods    []corev1.Pod
		want    string
		applied bool
		deleted bool
	}{
		"it does not exist":        {nil, nil, "waiting for Job x: it has not begun", true, false},
		"it runs":                  {&batchv1.Job{}, []corev1.Pod{pod(corev1.PodRunning, 0, corev1.ContainerState{})}, "waiting for Job x: its pod runs", false, false},
		"its image is missing":     {&batchv1.Job{}, []corev1.Pod{pod(corev1.PodPending, 0, waits)}, "waiting for Job x: its pod does not run yet: ImagePullBackOff", false, false},
		"it tries again":           {&batchv1.Job{}, failed, "waiting for Job x: its last pod has ended with exit code 3", false, false},
		"it is about to fail":      {jobWith(batchv1.JobFailureTarget, "BackoffLimitExceeded"), nil, "waiting for Job x", false, false},
		"it has failed":            {jobWith(batchv1.JobFailed, "BackoffLimitExceeded"), failed, "failed: Job x has failed: BackoffLimitExceeded: its last pod has ended with exit code 3", false, true},
		"it is complete":           {jobWith(batchv1.JobComplete, ""), nil, "done", false, true},
		"a pod alone says nothing": {&batchv1.Job{}, []corev1.Pod{pod(corev1.PodSucceeded, 0, exit(0))}, "waiting for Job x: its pod has ended", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, applier, j := newJobAPI(t)
			a.job, a.pods = tc.job, corev1.PodList{Items: tc.pods}
			got := applier.runJob(t.Context(), j)
			words := got.Message
			if got.Failed {
				words = "failed: " + words
			}
			if got.Done {
				words += "done"
			}
			if words != tc.want || got.Final != got.Failed {
				t.Errorf("got  %q, final %t\nwant %q", words, got.Final, tc.want)
			}
			requests := strings.Join(a.paths, "\n")
			if applied := strings.Contains(requests, "PATCH"); applied != tc.applied {
				t.Errorf("its objects were applied: %t", applied)
			}
			if deleted := strings.Contains(requests, "DELETE /api/v1/namespaces/hotspare-bootstrap/secrets/x"); deleted != tc.deleted {
				t.Errorf("its environment was deleted: %t", deleted)
			}
		})
	}
}

// A Job is not done while its rights remain in the cluster.
func TestTheRightsOfAJobEndWithIt(t *testing.T) {
	a, applier, j := newJobAPI(t)
	a.job = jobWith(batchv1.JobComplete, "")
	a.refusals["/api/v1/namespaces/hotspare-bootstrap/secrets/x"] = metav1.Status{Code: 503, Reason: metav1.StatusReasonServiceUnavailable}
	if got := applier.runJob(t.Context(), j); got.Done || got.Message != "the rights of Job x cannot be removed: it is not ready to serve" {
		t.Errorf("got %+v", got)
	}
	a.refusals["/api/v1/namespaces/hotspare-bootstrap/secrets/x"] = metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound}
	if got := applier.runJob(t.Context(), j); !got.Done {
		t.Errorf("got %+v", got)
	}
}

// Once a Job exists, nothing is applied again: it does not begin without what it needs.
func TestAJobBeginsWhenItHasWhatItNeeds(t *testing.T) {
	a, applier, j := newJobAPI(t)
	env := "/api/v1/namespaces/hotspare-bootstrap/secrets/x"
	a.refusals[env] = metav1.Status{Code: 500, Reason: metav1.StatusReasonInternalError, Message: "a webhook failed"}
	if got := applier.runJob(t.Context(), j); got.Done || strings.Contains(strings.Join(a.paths, " "), "/configmaps/x") {
		t.Errorf("got %+v, after %v", got, a.paths)
	}
	delete(a.refusals, env)
	if got := applier.runJob(t.Context(), j); got.Message != "waiting for Job x: it has not begun" || !strings.Contains(strings.Join(a.paths, " "), "/configmaps/x") {
		t.Errorf("got %+v, after %v", got, a.paths)
	}
}
