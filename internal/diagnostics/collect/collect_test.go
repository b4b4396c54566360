package collect_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/diagnostics"
	"hotspare.io/hotspare/internal/diagnostics/collect"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// spoke answers these paths. A value that is an error is returned; other values are encoded as JSON, except texts.
type spoke map[string]any

func (s spoke) ReadPath(_ context.Context, path string, query map[string]string, limit int64) ([]byte, error) {
	if query["container"] != "" {
		path += "?" + query["container"]
		if query["previous"] != "" {
			path += ",previous"
		}
	}
	switch a := s[path].(type) {
	case nil:
		return nil, apierrors.NewNotFound(schema.GroupResource{}, path)
	case error:
		return nil, a
	case string:
		return []byte(a), nil
	default:
		raw, err := json.Marshal(a)
		if err == nil && int64(len(raw)) > limit {
			err = errors.New("too long")
		}
		return raw, err
	}
}

const password = "correct-horse-battery"

func node(name string, ready corev1.ConditionStatus) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	return n
}

// world are the objects of a hub with the cluster c of pool n/p.
func world() (*hivev1.ClusterDeployment, []client.Object) {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	cd := &hivev1.ClusterDeployment{ObjectMeta: meta("c", "c")}
	cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: "n", PoolName: "p", ClaimName: "mine"}
	cd.Spec.ClusterMetadata = &hivev1.ClusterMetadata{AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: "kubeconfig"}}
	cd.Status.Conditions = []hivev1.Condition{{
		Type: hivev1.ClusterGatesPassed, Status: corev1.ConditionFalse, Reason: hivev1.ReasonGateFailed, Message: "web does not answer " + password,
	}}
	log := "level=fatal msg=" + password
	return cd, []client.Object{
		cd,
		&hivev1.ClusterPool{ObjectMeta: meta("n", "p"), Spec: hivev1.ClusterPoolSpec{PullSecretRef: &corev1.LocalObjectReference{Name: "pull"}}},
		&hivev1.ClusterClaim{ObjectMeta: meta("n", "mine")},
		&v1alpha1.PoolPolicy{ObjectMeta: meta("n", "p"), Spec: v1alpha1.PoolPolicySpec{BootstrapRef: &v1alpha1.BootstrapReference{Name: "b"}}},
		&v1alpha1.ClusterBootstrap{ObjectMeta: meta("n", "b"), Spec: v1alpha1.ClusterBootstrapSpec{Steps: []v1alpha1.BootstrapStep{{
			Name: "s", Manifests: &v1alpha1.BootstrapManifests{From: []v1alpha1.ManifestSource{{SecretRef: &v1alpha1.ManifestReference{Name: "step"}}}},
		}}}},
		&corev1.Secret{ObjectMeta: meta("n", "step"), Data: map[string][]byte{"a": []byte("kind: Secret\nstringData:\n  a: " + password + "\n")}},
		&hivev1.ClusterProvision{ObjectMeta: meta("c", "c-0"), Spec: hivev1.ClusterProvisionSpec{
			ClusterDeploymentRef: corev1.LocalObjectReference{Name: "c"}, Stage: hivev1.StageFailed, InstallLog: &log,
		}},
		&hivev1.ClusterProvision{ObjectMeta: meta("c", "d-0"), Spec: hivev1.ClusterProvisionSpec{ClusterDeploymentRef: corev1.LocalObjectReference{Name: "d"}, Attempt: 9}},
		&corev1.Event{ObjectMeta: meta("n", "e1"), InvolvedObject: corev1.ObjectReference{Kind: "ClusterPool", Name: "p"}, Reason: "PoolEvent", LastTimestamp: metav1.NewTime(noon)},
		&corev1.Event{ObjectMeta: meta("c", "e2"), InvolvedObject: corev1.ObjectReference{Kind: "ClusterDeployment", Name: "c"}, Reason: "ClusterEvent", Message: password},
		&corev1.Event{ObjectMeta: meta("c", "e3"), InvolvedObject: corev1.ObjectReference{Kind: "ClusterDeployment", Name: "d"}, Reason: "Foreign"},
	}
}

// answers are those of a cluster with a pod that crashes.
func answers() spoke {
	crashing := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "web-1"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "web", Env: []corev1.EnvVar{{Name: "X", Value: "in-the-spec"}},
	}}}}
	crashing.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "web", RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
	}}
	good := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "good"}}
	good.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	done := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "done"}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}
	return spoke{
		"/api/v1/nodes":  corev1.NodeList{Items: []corev1.Node{node("a", corev1.ConditionTrue), node("b", corev1.ConditionFalse)}},
		"/api/v1/events": corev1.EventList{Items: []corev1.Event{{Reason: "InCluster", Message: "m"}}},
		"/api/v1/pods":   corev1.PodList{Items: []corev1.Pod{crashing, good, done}},
		"/apis/apiregistration.k8s.io/v1/apiservices":        `{"items":[{"metadata":{"name":"v1.bad"},"status":{"conditions":[{"type":"Available","status":"False"}]}},{"metadata":{"name":"v1.good"},"status":{"conditions":[{"type":"Available","status":"True"}]}}]}`,
		"/api/v1/namespaces/web/pods/web-1/log?web,previous": "panic: " + password,
		"/apis/apps/v1/namespaces/kube-system/deployments":   apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "", errors.New("no")),
	}
}

// collected returns the files of a bundle by name, and the bundle as one text.
func collected(t *testing.T, c *collect.Collector, cd *hivev1.ClusterDeployment) (map[string]string, string) {
	t.Helper()
	c.Limits = diagnostics.DefaultLimits
	b, err := c.Bundle(t.Context(), cd, "a test", noon)
	if err != nil {
		t.Fatal(err)
	}
	files, all := map[string]string{}, ""
	for _, f := range b.Files() {
		files[f.Name] = string(f.Content)
		all += f.Name + "\n" + string(f.Content) + "\n"
	}
	if strings.Contains(all, password) {
		t.Errorf("the bundle contains the password:\n%s", all)
	}
	return files, all
}

func hub(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), hivev1.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).WithInterceptorFuncs(funcs).
		WithIndex(&corev1.Event{}, "involvedObject.name", func(o client.Object) []string { return []string{o.(*corev1.Event).InvolvedObject.Name} }).Build()
}

func connectTo(s spoke) func(context.Context, *hivev1.ClusterDeployment) (collect.Spoke, func(), string, error) {
	return func(context.Context, *hivev1.ClusterDeployment) (collect.Spoke, func(), string, error) {
		return s, func() {}, "", nil
	}
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("it lacks %q", p)
		}
	}
}

func TestWhatABundleHolds(t *testing.T) {
	cd, objects := world()
	c := &collect.Collector{Hub: hub(t, interceptor.Funcs{}, objects...), Connect: connectTo(answers()), FindLogs: func(context.Context, *hivev1.ClusterDeployment) ([]collect.Log, error) {
		return []collect.Log{{Name: "installer.log", Text: "installed " + password}}, errors.New("no other")
	}}
	files, all := collected(t, c, cd)
	contains(t, files["summary.txt"],
		"GatesPassed is False since", "install attempt 0 is failed", "1 of 2 nodes are ready", "pod web/web-1 is not ready: container web: CrashLoopBackOff, 3 restarts",
		"APIService v1.bad is not available", "kube-system-deployments.yaml: it responds: ", "logs: no other")
	contains(t, files["hub/clusterdeployment.yaml"], "kind: ClusterDeployment", "apiVersion: hive.openshift.io/v1")
	contains(t, files["hub/events.txt"], "PoolEvent", "ClusterEvent")
	for name, part := range map[string]string{
		"hub/pool.yaml": "kind: ClusterPool", "hub/claim.yaml": "name: mine", "hub/poolpolicy.yaml": "name: b", "hub/bootstrap.yaml": "name: step",
		"hub/provisions.yaml": "stage: failed", "install/attempt-0.log": "level=fatal", "logs/installer.log": "installed", "conditions.txt": "GatesPassed",
		"cluster/nodes.yaml": "kind: Node", "cluster/events.txt": "InCluster", "cluster/pods-not-ready.yaml": "CrashLoopBackOff",
		"cluster/apiservices-not-available.yaml": "v1.bad", "cluster/logs/web.web-1.web.previous.log": "panic: REDACTED",
	} {
		if !strings.Contains(files[name], part) {
			t.Errorf("%s lacks %q: %s", name, part, files[name])
		}
	}
	for _, no := range []string{"Foreign", "d-0", "v1.good", "in-the-spec", "name: good", "name: done"} {
		if strings.Contains(all, no) {
			t.Errorf("the bundle contains %s", no)
		}
	}
}

// Each part that the hub refuses is a line of the summary, and the rest is there.
func TestAPartThatIsRefusedSpoilsNoOther(t *testing.T) {
	kindOf := func(o runtime.Object) string {
		return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1."), "List")
	}
	whole := func(kind string) map[string]string {
		cd, objects := world()
		refuse := func(o runtime.Object) error {
			if kindOf(o) == kind {
				return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", errors.New("no"))
			}
			return nil
		}
		h := hub(t, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				return errors.Join(refuse(o), c.Get(ctx, key, o, opts...))
			},
			List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, opts ...client.ListOption) error {
				if err := refuse(o); err != nil {
					return err
				}
				return c.List(ctx, o, opts...)
			},
		}, objects...)
		c := &collect.Collector{Hub: h, Connect: connectTo(answers()), Limits: diagnostics.DefaultLimits}
		b, err := c.Bundle(t.Context(), cd, "a test", noon)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, f := range b.Files() {
			out[f.Name] = string(f.Content)
		}
		return out
	}
	all := len(whole("nothing"))
	for kind, part := range map[string]string{
		"ClusterClaim": "hub/claim.yaml", "ClusterProvision": "hub/provisions.yaml", "Event": "hub/events.txt",
	} {
		files := whole(kind)
		if !strings.Contains(files["summary.txt"], part) || !strings.Contains(files["summary.txt"], "you may not read it") {
			t.Errorf("without %s, the summary is\n%s", kind, files["summary.txt"])
		}
		if len(files) < all-2 {
			t.Errorf("without %s, there are %d files, want nearly %d", kind, len(files), all)
		}
	}
}

// secretReads are the reads of Secrets, and of what refers to them, that a hub refuses.
type secretReads struct {
	list, get, pool, policy, bootstrap error
	// lists is the number of lists of Secrets, and refused that of the first ones that are refused; 0 refuses all.
	lists, refused int
}

func (r *secretReads) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			var refusal error
			switch o.(type) {
			case *corev1.Secret:
				refusal = r.get
			case *hivev1.ClusterPool:
				refusal = r.pool
			case *v1alpha1.PoolPolicy:
				refusal = r.policy
			case *v1alpha1.ClusterBootstrap:
				refusal = r.bootstrap
			}
			if refusal != nil {
				return refusal
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, opts ...client.ListOption) error {
			secrets, is := o.(*corev1.SecretList)
			if !is {
				return c.List(ctx, o, opts...)
			}
			if r.lists++; r.list != nil && (r.refused == 0 || r.lists <= r.refused) {
				return r.list
			}
			return listPage(ctx, c, secrets, opts)
		},
	}
}

// listPage lists a page of Secrets, as an API server does and the fake one does not.
func listPage(ctx context.Context, c client.WithWatch, list *corev1.SecretList, opts []client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if err := c.List(ctx, list, client.InNamespace(o.Namespace)); err != nil {
		return err
	}
	begin := 0
	if o.Continue != "" {
		n, err := strconv.Atoi(o.Continue)
		if err != nil {
			return err
		}
		begin = n
	}
	end := min(begin+int(o.Limit), len(list.Items))
	if end < len(list.Items) {
		list.Continue = strconv.Itoa(end)
	}
	list.Items = list.Items[begin:end]
	return nil
}

// A bundle without the values of Secrets has no text in which one could be.
func TestABundleHasNoTextsIfASecretIsNotKnown(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New("no"))
	timeout := apierrors.NewTimeoutError("slow", 1)
	for name, tc := range map[string]struct {
		reads secretReads
		want  string
		lists int
	}{
		"they may not be listed":         {secretReads{list: forbidden}, "the Secrets in namespace c are not known: you may not read it", 1},
		"each list of them times out":    {secretReads{list: timeout}, "the Secrets in namespace c are not known: Timeout: slow", 3},
		"one of them may not be read":    {secretReads{get: forbidden}, "Secret n/pull is not known: you may not read it", 1},
		"the pool cannot be read":        {secretReads{pool: timeout}, "the Secrets to which the pool refers are not known: Timeout: slow", 1},
		"nor its policy":                 {secretReads{policy: timeout}, "the Secrets to which the bootstrap refers are not known: reading the policy of pool n/p: Timeout: slow", 1},
		"nor the bootstrap of its steps": {secretReads{bootstrap: forbidden}, "the Secrets to which the bootstrap refers are not known: you may not read it", 1},
	} {
		t.Run(name, func(t *testing.T) {
			cd, objects := world()
			cd.Status.APIURL = password
			c := &collect.Collector{
				Hub: hub(t, tc.reads.funcs(), objects...), Connect: connectTo(answers()), Limits: diagnostics.DefaultLimits,
				FindLogs: func(context.Context, *hivev1.ClusterDeployment) ([]collect.Log, error) {
					return []collect.Log{{Name: "installer.log", Text: "installed " + password}}, nil
				},
			}
			b, err := c.Bundle(t.Context(), cd, "a gate failed: "+password, noon)
			if err != nil {
				t.Fatal(err)
			}
			files, all := map[string]string{}, ""
			for _, f := range b.Files() {
				files[f.Name] = string(f.Content)
				all += f.Name + "\n" + string(f.Content) + "\n"
			}
			if strings.Contains(all, password) || strings.Contains(all, ".log") || strings.Contains(all, ".txt: ") {
				t.Errorf("the bundle contains a text:\n%s", all)
			}
			contains(t, files["summary.txt"], "logs, events, messages and specs: values of Secrets could not be removed from them, because "+tc.want)
			contains(t, files["hub/clusterdeployment.yaml"], "kind: ClusterDeployment", "reason: GateFailed", "status: \"False\"", "type: GatesPassed")
			contains(t, files["cluster/pods-not-ready.yaml"], "name: web-1", "reason: CrashLoopBackOff", "restartCount: 3")
			if tc.reads.lists != tc.lists {
				t.Errorf("the Secrets were listed %d times, want %d", tc.reads.lists, tc.lists)
			}
		})
	}
}

// A user may keep the texts: what the user may read is removed, and the summary says what was not searched for.
func TestTextsThatAUserKeeps(t *testing.T) {
	cd, objects := world()
	objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "kubeconfig"}, Data: map[string][]byte{"a": []byte(password)}})
	reads := &secretReads{list: apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no"))}
	files, _ := collected(t, &collect.Collector{Hub: hub(t, reads.funcs(), objects...), Connect: connectTo(answers()), KeepTexts: true}, cd)
	contains(t, files["summary.txt"], "values of Secrets, to remove them from the bundle: the Secrets in namespace c are not known: you may not read it", "GatesPassed is False")
	contains(t, files["install/attempt-0.log"], "level=fatal msg=REDACTED")
}

// What the Secrets of later pages contain is removed, too.
func TestEveryPageOfSecretsIsRead(t *testing.T) {
	cd, objects := world()
	objects = slices.DeleteFunc(objects, func(o client.Object) bool { _, is := o.(*corev1.Secret); return is })
	for i := range 1200 {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: fmt.Sprintf("s%04d", i)}, Data: map[string][]byte{"a": fmt.Appendf(nil, "value-%04d", i)}}
		if i == 1199 {
			s.Data["a"] = []byte(password)
		}
		objects = append(objects, s)
	}
	reads := &secretReads{}
	files, _ := collected(t, &collect.Collector{Hub: hub(t, reads.funcs(), objects...), Connect: connectTo(answers())}, cd)
	contains(t, files["install/attempt-0.log"], "level=fatal msg=REDACTED")
	if reads.lists != 3 {
		t.Errorf("%d pages were read", reads.lists)
	}
	for i := range 1000 {
		objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: fmt.Sprintf("t%04d", i)}})
	}
	files, _ = collected(t, &collect.Collector{Hub: hub(t, reads.funcs(), objects...), Connect: connectTo(answers())}, cd)
	contains(t, files["summary.txt"], "the Secrets in namespace c are not known: there are more than 2000")
}

func TestAListOfSecretsThatTimesOutIsRepeated(t *testing.T) {
	cd, objects := world()
	reads := &secretReads{list: apierrors.NewTimeoutError("slow", 1), refused: 2}
	files, _ := collected(t, &collect.Collector{Hub: hub(t, reads.funcs(), objects...), Connect: connectTo(answers())}, cd)
	contains(t, files["install/attempt-0.log"], "level=fatal msg=REDACTED")
}

// A value of a Secret reaches a bundle by what a step does with it, whatever part of the step refers to the Secret.
func TestSecretsOfEveryPartOfAStepAreRemoved(t *testing.T) {
	from := v1alpha1.ManifestSource{SecretRef: &v1alpha1.ManifestReference{Name: "of-the-part"}}
	for part, step := range map[string]v1alpha1.BootstrapStep{
		"manifests.from":    {Manifests: &v1alpha1.BootstrapManifests{From: []v1alpha1.ManifestSource{from}}},
		"job.envFrom":       {Job: &v1alpha1.BootstrapJob{EnvFrom: []v1alpha1.ManifestSource{from}}},
		"chart.archiveFrom": {Chart: &v1alpha1.BootstrapChart{ArchiveFrom: from}},
		"chart.valuesFrom":  {Chart: &v1alpha1.BootstrapChart{ValuesFrom: []v1alpha1.ManifestSource{from}}},
	} {
		t.Run(part, func(t *testing.T) {
			cd, objects := world()
			for _, o := range objects {
				switch o := o.(type) {
				case *v1alpha1.ClusterBootstrap:
					o.Spec.Steps = []v1alpha1.BootstrapStep{step}
				case *corev1.Secret:
					o.Name = "of-the-part"
				}
			}
			collected(t, &collect.Collector{Hub: hub(t, interceptor.Funcs{}, objects...), Connect: connectTo(answers())}, cd)
		})
	}
}

func TestAClusterThatDoesNotAnswer(t *testing.T) {
	cd, objects := world()
	h := hub(t, interceptor.Funcs{}, objects...)
	refused := &collect.Collector{Hub: h, Connect: connectTo(spoke{"/api/v1/nodes": syscall.ECONNREFUSED})}
	files, _ := collected(t, refused, cd)
	contains(t, files["summary.txt"], "cluster/nodes.yaml: connection refused")
	if strings.Contains(files["summary.txt"], "cluster/events.txt") {
		t.Error("a cluster that refuses connections is asked again")
	}
	halfway := answers()
	halfway["/api/v1/pods"] = syscall.ECONNRESET
	files, _ = collected(t, &collect.Collector{Hub: h, Connect: connectTo(halfway)}, cd)
	contains(t, files["summary.txt"], "pods-not-ready.yaml: connection reset", "1 of 2 nodes are ready")
	files, _ = collected(t, &collect.Collector{Hub: h, Connect: func(context.Context, *hivev1.ClusterDeployment) (collect.Spoke, func(), string, error) {
		return nil, nil, "its admin kubeconfig cannot be read", nil
	}}, cd)
	contains(t, files["summary.txt"], "the cluster's API: its admin kubeconfig cannot be read")
}

// A connection could wake a cluster: a released one that sleeps stays asleep.
func TestAClusterThatSleepsIsNotConnectedTo(t *testing.T) {
	for _, c := range []struct {
		state hivev1.PowerState
		now   string
		want  bool
	}{
		{hivev1.PowerHibernating, hivev1.StatusHibernating, false},
		{hivev1.PowerRunning, hivev1.StatusHibernating, false},
		{hivev1.PowerHibernating, "Stopping", false},
		{hivev1.PowerHibernating, hivev1.StatusRunning, true},
		{hivev1.PowerHibernating, hivev1.ReasonFailedToStop, true},
		{hivev1.PowerRunning, hivev1.StatusRunning, true},
		{hivev1.PowerRunning, "", true},
	} {
		cd, objects := world()
		cd.Spec.PowerState, cd.Status.PowerState = c.state, c.now
		connected := false
		files, _ := collected(t, &collect.Collector{Hub: hub(t, interceptor.Funcs{}, objects...), Connect: func(context.Context, *hivev1.ClusterDeployment) (collect.Spoke, func(), string, error) {
			connected = true
			return answers(), func() {}, "", nil
		}}, cd)
		if connected != c.want {
			t.Errorf("%s, %s: connected = %t", c.state, c.now, connected)
		}
		if !c.want {
			contains(t, files["summary.txt"], "the cluster's API: the cluster hibernates, and is not woken for a bundle")
		}
	}
}
