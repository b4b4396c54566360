package poolpolicy_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/kstatus/kstatustest"
	"hotspare.io/hotspare/internal/sizing/record"
)

func TestARecommendationChangesNoPool(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 8), newPolicy(recommend), newCluster("a"))
	h.work(8)
	want(t, "the pool", h.counts(), "3 of 8")
	want(t, "Ready", h.says(v1alpha1.PolicyReady), "True Computed")
	want(t, "Applied", h.says(v1alpha1.PolicyApplied), "False RecommendOnly")
	st := h.policy().Status
	want(t, "set by", st.CountsSetBy, v1alpha1.CountsSetByUser)
	want(t, "static", *st.Static, v1alpha1.PoolCounts{Running: 3, Size: 8})
	want(t, "resumes", *st.Resumes, v1alpha1.MeasuredDurations{Median: "5m0s", P90: "5m0s", Count: 55})
	want(t, "depths with resumes", len(st.ShallowResumes), 0)
	want(t, "writes of the pool", h.writes["*v1.ClusterPool"], 0)
	if st.Coverage == nil || st.Coverage.Seen != "100%" || st.Record.Claims != 54 || st.ExpectedClaimsPerHour == "" {
		t.Errorf("%+v, %+v", st.Coverage, st.Record)
	}
	kstatustest.ExpectStatus(t, h.policy(), "Current")
}

func TestAPoolIsSizedByItsDemand(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 8), newPolicy(), newCluster("a"))
	h.work(7)
	want(t, "while it learns", h.counts(), "3 of 8")
	want(t, "Ready while it learns", h.says(v1alpha1.PolicyReady), "False Learning")
	want(t, "set by", h.policy().Status.CountsSetBy, v1alpha1.CountsSetByPolicy)
	want(t, "events while it learns", len(h.takeEvents()), 0)
	h.work(1)
	night := h.counts()
	if night == "3 of 8" || !strings.HasPrefix(night, "0 of") && !strings.HasPrefix(night, "1 of") {
		t.Errorf("on Tuesday at eight: %s", night)
	}
	want(t, "Ready", h.says(v1alpha1.PolicyReady), "True Computed")
	want(t, "Applied", h.says(v1alpha1.PolicyApplied), "True Applied")
	want(t, "static", *h.policy().Status.Static, v1alpha1.PoolCounts{Running: 3, Size: 8})
	recorded := h.takeEvents()
	for i, e := range recorded {
		prefix := []string{"Normal Sized PoolPolicy dev: set spec.", "Normal Sized set spec."}[i%2]
		if !strings.HasPrefix(e, prefix) || !strings.Contains(e, " expected") {
			t.Errorf("event %d does not say what was set and why: %s", i, e)
		}
	}
}

func TestAPassThatChangesNothingWritesNothing(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 8), newPolicy(), newCluster("a"))
	h.run(2 * time.Minute)
	before := maps.Clone(h.writes)
	want(t, "writes at first", before["*v1.ClusterPool"]+before["*v1.ConfigMap"], 2)
	h.run(50 * time.Minute)
	for kind, n := range h.writes {
		want(t, "writes of "+kind+" in 50 idle minutes", n-before[kind], 0)
	}
	h.work(8)
	h.clock.SetTime(time.Date(2026, 12, 12, 23, 0, 0, 0, time.UTC)) // a quiet weekend
	h.run(2 * time.Hour)
	before = maps.Clone(h.writes)
	h.run(time.Hour)
	if n := h.writes["*v1alpha1.PoolPolicy"] - before["*v1alpha1.PoolPolicy"]; n > 5 {
		t.Errorf("%d writes of the policy in a quiet hour", n)
	}
}

func TestAChangeByHandIsKeptUntilMidnight(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 8), newPolicy(), newCluster("a"))
	h.work(8)
	h.takeEvents()
	h.scale(6, 9)
	h.run(2 * time.Hour)
	want(t, "the pool", h.counts(), "6 of 9")
	want(t, "Applied", h.says(v1alpha1.PolicyApplied), "False ManualChange")
	m := h.policy().Status.ManualChange
	want(t, "by", m.By, "kubectl-edit")
	want(t, "set by", h.policy().Status.CountsSetBy, v1alpha1.CountsSetByUser)
	if says := h.message(v1alpha1.PolicyApplied); !strings.Contains(says, "by kubectl-edit") || !strings.Contains(says, "midnight in Europe/Berlin") ||
		!strings.Contains(says, "kubectl annotate -n team poolpolicy dev hotspare.io/resume-sizing=") {
		t.Errorf("it says %s", says)
	}
	recorded := strings.Join(h.takeEvents(), "\n")
	if strings.Count(recorded, "ManualChange") != 1 || strings.Contains(recorded, "Sized") {
		t.Errorf("events: %s", recorded)
	}
	kstatustest.ExpectStatus(t, h.policy(), "Current")
	h.restart()
	h.run(time.Minute)
	want(t, "the pool after a restart", h.counts(), "6 of 9")
	// managedFields have the time of the machine, not that of the test: the change was yesterday, at
	// the latest.
	h.clock.SetTime(m.Until.Add(-time.Second))
	h.run(3 * time.Second)
	h.pass()
	if got := h.counts(); got == "6 of 9" {
		t.Errorf("after midnight: %s", got)
	}
	want(t, "Applied after midnight", h.says(v1alpha1.PolicyApplied), "True Applied")
	want(t, "static", *h.policy().Status.Static, v1alpha1.PoolCounts{Running: 6, Size: 9})
}

func TestAPersonEndsAChangeByHand(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 8), newPolicy(), newCluster("a"))
	h.run(time.Minute)
	h.scale(6, 30)
	h.run(time.Minute)
	want(t, "the pool", h.counts(), "6 of 30")
	h.edit(func(p *v1alpha1.PoolPolicy) { p.Annotations = map[string]string{v1alpha1.AnnotationResumeSizing: ""} })
	h.run(time.Minute)
	want(t, "the pool, within the limits", h.counts(), "6 of 20")
	want(t, "Applied", h.says(v1alpha1.PolicyApplied), "True Applied")
	if a := h.policy().Annotations; len(a) > 0 {
		t.Errorf("annotations %v", a)
	}
	if h.policy().Status.ManualChange != nil {
		t.Error("the status has a change by hand")
	}
}

func TestWhyNothingIsSet(t *testing.T) {
	for name, tc := range map[string]struct {
		objects                []client.Object
		valid, applied, status string
	}{
		"no pool":      {[]client.Object{newPolicy()}, "True Understood", "False PoolNotFound", "Failed PoolNotFound"},
		"invalid zone": {[]client.Object{newPool(1, 2), newPolicy(func(s *v1alpha1.PoolPolicySpec) { s.TimeZone = "Mars" })}, "False InvalidTimeZone", "False PolicyInvalid", "Failed InvalidTimeZone"},
		"invalid entry": {[]client.Object{newPool(1, 2), newPolicy(func(s *v1alpha1.PoolPolicySpec) {
			s.Calendar = []v1alpha1.CalendarEntry{{Name: "x", Start: "soon", Running: new(int32)}}
		})}, "False InvalidCalendar", "False PolicyInvalid", "Failed InvalidCalendar"},
		"an old CRD": {[]client.Object{newPool(1, 2), newPolicy(func(s *v1alpha1.PoolPolicySpec) { s.Size = nil })}, "False InvalidLimits", "False PolicyInvalid", "Failed InvalidLimits"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, tc.objects...)
			res := h.pass()
			want(t, "Valid", h.says(v1alpha1.PolicyValid), tc.valid)
			want(t, "Applied", h.says(v1alpha1.PolicyApplied), tc.applied)
			recorded := time.Duration(0) // a watch wakes it
			if len(tc.objects) > 1 {
				recorded = time.Minute
			}
			want(t, "requeue", res.RequeueAfter, recorded)
			kstatustest.ExpectStatus(t, h.policy(), tc.status)
			before := maps.Clone(h.writes)
			h.pass()
			want(t, "writes of a second pass", h.writes["*v1alpha1.PoolPolicy"], before["*v1alpha1.PoolPolicy"])
		})
	}
}

func TestAPoolThatIsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 8), newPolicy(), newCluster("a"))
	h.run(10 * time.Minute)
	if err := h.Delete(h.Context(), newPool(0, 0)); err != nil {
		t.Fatal(err)
	}
	h.pass()
	want(t, "Applied", h.says(v1alpha1.PolicyApplied), "False PoolNotFound")
	h.create(newPool(2, 2))
	h.run(time.Minute)
	want(t, "Applied", h.says(v1alpha1.PolicyApplied), "True Applied")
	want(t, "the new pool", h.counts(), "2 of 2")
}

func TestAPoolOfTheSameNameContinuesTheRecord(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 8), newPolicy(), newCluster("a"))
	h.claim(true)
	h.run(time.Minute)
	if err := h.Delete(h.Context(), newPool(0, 0)); err != nil {
		t.Fatal(err)
	}
	another := newPool(2, 2)
	another.UID = "another"
	h.create(another)
	h.claim(true)
	h.run(time.Minute)
	want(t, "the owner", h.record().OwnerReferences[0].UID, "another")
	want(t, "claims", h.policy().Status.Record.Claims, 2)
	before := h.writes["*v1.ConfigMap"]
	h.run(10 * time.Minute)
	want(t, "idle writes", h.writes["*v1.ConfigMap"]-before, 0)
}

func TestARefusedWriteIsReported(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 30), newPolicy(), newCluster("a"))
	h.refuse = func(o client.Object) error {
		if _, is := o.(*hivev1.ClusterPool); is {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "clusterpools"}, key.Name, nil)
		}
		return nil
	}
	want(t, "requeue", h.pass().RequeueAfter, time.Minute)
	want(t, "Applied", h.says(v1alpha1.PolicyApplied), "False Refused")
	kstatustest.ExpectStatus(t, h.policy(), "Failed Refused")
	h.refuse = func(client.Object) error { return nil }
	h.pass()
	want(t, "Applied", h.says(v1alpha1.PolicyApplied), "True Applied")
	want(t, "the pool", h.counts(), "3 of 20")
}

func TestARefusedLadderStopsNothing(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 30), newPolicy(ladder(rung("freeze", 1))), newCluster("a"))
	h.refuse = func(o client.Object) error {
		if pool, is := o.(*hivev1.ClusterPool); is && pool.Annotations[hivev1.AnnotationSleepLadder] != "" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "clusterpools"}, key.Name, nil)
		}
		return nil
	}
	h.claim(true)
	h.run(5 * time.Minute)
	want(t, "the pool", h.counts(), "3 of 20")
	want(t, "Applied", h.says(v1alpha1.PolicyApplied), "False Refused")
	want(t, "the counts are set by", h.policy().Status.CountsSetBy, v1alpha1.CountsSetByPolicy)
	if says := h.message(v1alpha1.PolicyApplied); !strings.Contains(says, "The API server refuses to set annotation hotspare.io/sleep-ladder to freeze:1: ") {
		t.Error(says)
	}
	want(t, "claims", h.policy().Status.Record.Claims, 1)
	if h.record() == nil {
		t.Error("the claims were not saved")
	}
	h.scale(7, 9)
	h.pass()
	want(t, "Applied", h.says(v1alpha1.PolicyApplied), "False ManualChange")
	says := h.message(v1alpha1.PolicyApplied)
	if !strings.Contains(says, "sleep-ladder to freeze:1: ") || !strings.Contains(says, " The counts were changed by hand") || !strings.HasSuffix(says, "hotspare.io/resume-sizing=") {
		t.Error(says)
	}
	h.edit(func(p *v1alpha1.PoolPolicy) { p.Annotations = map[string]string{v1alpha1.AnnotationResumeSizing: ""} })
	h.refuse = func(client.Object) error { return nil }
	h.pass()
	want(t, "Applied", h.says(v1alpha1.PolicyApplied), "True Applied")
	want(t, "the ladder", h.ladder(), "freeze:1")
}

func TestARecordSurvivesARestart(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 8), newPolicy(recommend), newCluster("a"))
	h.work(8)
	before := h.policy().Status
	cm := h.record()
	want(t, "the owner", cm.OwnerReferences[0].Name, key.Name)
	if size := len(cm.BinaryData[record.ClaimsKey]) + len(cm.Data[record.DetailsKey]); size > 100_000 {
		t.Errorf("the record has %d bytes", size)
	}
	h.restart()
	h.clock.SetTime(h.clock.Now().Add(time.Minute))
	h.pass()
	want(t, "Ready", h.says(v1alpha1.PolicyReady), "True Computed")
	want(t, "claims", h.policy().Status.Record.Claims, before.Record.Claims)
	want(t, "resumes", *h.policy().Status.Resumes, *before.Resumes)
	if err := h.Delete(h.Context(), cm); err != nil {
		t.Fatal(err)
	}
	h.run(2 * time.Hour)
	if h.record() == nil {
		t.Error("there is no record after it was deleted")
	}
}

func TestClaimsAreRecordedWhileThePolicyIsNotValid(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 8), newPolicy(recommend), newCluster("a"))
	h.work(1)
	before := h.policy().Status.Record.Claims
	h.edit(func(p *v1alpha1.PoolPolicy) { p.Spec.TimeZone = "Mars" })
	h.work(1)
	want(t, "Valid", h.says(v1alpha1.PolicyValid), "False InvalidTimeZone")
	want(t, "RecordUsable", h.says(v1alpha1.PolicyRecordUsable), "True Recorded")
	var pool hivev1.ClusterPool
	if err := h.Get(h.Context(), key, &pool); err != nil {
		t.Fatal(err)
	}
	if err := h.Delete(h.Context(), &pool); err != nil {
		t.Fatal(err)
	}
	h.pass()
	want(t, "RecordUsable without a pool", h.says(v1alpha1.PolicyRecordUsable), "False PoolNotFound")
	h.create(newPool(3, 8))
	h.restart()
	h.edit(func(p *v1alpha1.PoolPolicy) { p.Spec.TimeZone = "UTC" })
	h.run(time.Minute)
	if n := h.policy().Status.Record.Claims; n < before+5 {
		t.Errorf("%d claims were recorded before the policy became invalid, and %d after a working day with it", before, n)
	}
}

func TestARecordThatIsDeletedIsWrittenAgain(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 8), newPolicy(recommend), newCluster("a"))
	h.work(8)
	claims := h.policy().Status.Record.Claims
	if err := h.Delete(h.Context(), h.record()); err != nil {
		t.Fatal(err)
	}
	h.run(2 * time.Hour)
	want(t, "Ready", h.says(v1alpha1.PolicyReady), "True Computed")
	want(t, "claims in memory", h.policy().Status.Record.Claims, claims)
	h.restart()
	h.run(time.Minute)
	want(t, "claims after a restart", h.policy().Status.Record.Claims, claims)
}

func TestARecordThatCannotBeReadIsSetAside(t *testing.T) {
	t.Parallel()
	bad := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: record.ConfigMapName(key.Name), Labels: map[string]string{v1alpha1.LabelDemandRecord: key.Name}},
		BinaryData: map[string][]byte{record.ClaimsKey: {9, 9, 9}}, Data: map[string]string{record.DetailsKey: "{}"},
	}
	h := newHub(t, newPool(3, 8), newPolicy(), newCluster("a"), bad)
	h.run(time.Minute)
	want(t, "RecordUsable", h.says(v1alpha1.PolicyRecordUsable), "False SetAside")
	cm := h.record()
	want(t, "the old claims", string(cm.BinaryData[record.SetAsidePrefix+record.ClaimsKey]), "\x09\x09\x09")
	h.restart()
	h.work(1)
	want(t, "RecordUsable after a restart", h.says(v1alpha1.PolicyRecordUsable), "False SetAside")
	want(t, "the old claims later", string(h.record().BinaryData[record.SetAsidePrefix+record.ClaimsKey]), "\x09\x09\x09")
	if n := h.policy().Status.Record.Claims; n < 9 {
		t.Errorf("%d claims after a day", n)
	}
	h.work(7)
	want(t, "RecordUsable after a week", h.says(v1alpha1.PolicyRecordUsable), "True Recorded")

	damaged := h.record()
	damaged.BinaryData[record.ClaimsKey] = []byte{8, 8, 8}
	if err := h.Update(h.Context(), damaged); err != nil {
		t.Fatal(err)
	}
	h.restart()
	h.work(1)
	want(t, "RecordUsable after a second damage", h.says(v1alpha1.PolicyRecordUsable), "False SetAside")
	want(t, "the claims of the second record", string(h.record().BinaryData[record.SetAsidePrefix+record.ClaimsKey]), "\x08\x08\x08")
}

func TestARecordFromTheFutureIsKept(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 8), newPolicy(), newCluster("a"))
	h.work(3)
	kept := h.record().Data[record.DetailsKey]
	right := h.clock.Now()
	for _, restarted := range []bool{false, true} {
		h.clock.SetTime(right.AddDate(0, 0, -2))
		if restarted {
			h.restart()
		}
		h.run(2 * time.Hour)
		want(t, "RecordUsable", h.says(v1alpha1.PolicyRecordUsable), "False FromTheFuture")
		want(t, "the record", h.record().Data[record.DetailsKey], kept)
		want(t, "the pool", h.counts(), "3 of 8")
		kstatustest.ExpectStatus(t, h.policy(), "Failed FromTheFuture")
	}
	h.clock.SetTime(right.Add(time.Minute))
	h.pass()
	want(t, "RecordUsable", h.says(v1alpha1.PolicyRecordUsable), "True Recorded")
	want(t, "claims", h.policy().Status.Record.Claims, 27)
}

func TestAConfigMapOfSomebodyElseIsNotTouched(t *testing.T) {
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: record.ConfigMapName(key.Name)}, Data: map[string]string{"a": "b"}}
	h := newHub(t, newPool(3, 8), newPolicy(), newCluster("a"), foreign)
	h.run(2 * time.Hour)
	want(t, "RecordUsable", h.says(v1alpha1.PolicyRecordUsable), "False NotARecord")
	want(t, "its content", len(h.record().Data)+len(h.record().BinaryData), 1)
	if err := h.Delete(h.Context(), h.record()); err != nil {
		t.Fatal(err)
	}
	h.run(time.Minute)
	want(t, "RecordUsable", h.says(v1alpha1.PolicyRecordUsable), "True Recorded")
	want(t, "the record", h.record().Labels[v1alpha1.LabelDemandRecord], key.Name)
}

func TestADeletedPolicyLeavesTheCountsAndTheRecord(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 30), newPolicy(), newCluster("a"))
	h.run(time.Minute)
	h.claim(true)
	h.pass() // it is in memory only
	if err := h.Delete(h.Context(), h.policy()); err != nil {
		t.Fatal(err)
	}
	h.refuse = func(client.Object) error { return apierrors.NewServiceUnavailable("for a moment") }
	if _, err := h.r.Reconcile(h.Context(), ctrl.Request{NamespacedName: key}); err == nil {
		t.Error("the record was not saved, and nobody tries again")
	}
	h.refuse = func(client.Object) error { return nil }
	h.pass()
	want(t, "the pool", h.counts(), "3 of 20")
	cm := h.record()
	saved, err := record.Decode(cm.BinaryData[record.ClaimsKey], cm.Data[record.DetailsKey], h.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	want(t, "claims", saved.Demand.Claims(), 1)
}

func TestTheLimitOfThePoolIsALimit(t *testing.T) {
	pool := newPool(3, 8)
	pool.Spec.MaxSize = new(int32)
	*pool.Spec.MaxSize = 5
	h := newHub(t, pool, newPolicy(), newCluster("a"))
	h.pass()
	want(t, "the pool", h.counts(), "3 of 5")
}

func TestAPoolThatMayHaveNoClusters(t *testing.T) {
	pool := newPool(3, 8)
	pool.Spec.MaxSize = new(int32)
	h := newHub(t, pool, newPolicy(), newCluster("a"))
	h.pass()
	want(t, "the pool", h.counts(), "0 of 0")
	want(t, "the reason", h.policy().Status.Recommended.Size.Cause, "maximum")
}

func TestAMinimumAboveTheLimitOfThePoolIsExplained(t *testing.T) {
	pool := newPool(3, 8)
	pool.Spec.MaxSize = new(int32(5))
	p := newPolicy()
	p.Spec.Size.Min = new(int32(6))
	h := newHub(t, pool, p, newCluster("a"))
	h.pass()
	const why = "maxSize of the pool is 5, which is below your minimum of 6: raise the one or lower the other"
	if got := h.policy().Status.Recommended; got == nil || !strings.Contains(got.Size.Reason, why) {
		t.Errorf("the recommendation is %+v, and does not say %q", got, why)
	}
}

func TestImportedClaimsAreUsedAtOnce(t *testing.T) {
	t.Parallel()
	h := newHub(t, newPool(3, 8), newPolicy(), newCluster("a"))
	h.work(1)
	want(t, "before", h.says(v1alpha1.PolicyReady), "False Learning")
	recorded := h.policy().Status.Record.Claims
	cm := h.record()
	r, err := record.Decode(cm.BinaryData[record.ClaimsKey], cm.Data[record.DetailsKey], h.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	var times []time.Time
	for at := r.Since.AddDate(0, 0, -20); at.Before(r.Since); at = at.Add(time.Hour) {
		times = append(times, at)
	}
	n := r.Demand.AddImported(times, r.Since, h.clock.Now())
	r.Since = times[0]
	claims, details, err := r.Encode(h.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	cm.BinaryData[record.ClaimsKey], cm.Data[record.DetailsKey] = claims, details
	if err := h.Update(h.Context(), cm); err != nil {
		t.Fatal(err)
	}
	h.pass()
	want(t, "nobody said that the record has changed", h.policy().Status.Record.Claims, recorded)
	h.edit(func(p *v1alpha1.PoolPolicy) {
		p.Annotations = map[string]string{v1alpha1.AnnotationClaimsImported: "now"}
	})
	h.pass()
	want(t, "claims", h.policy().Status.Record.Claims, recorded+int32(n))
	want(t, "after", h.says(v1alpha1.PolicyReady), "True Computed")
	if n := h.policy().Status.Coverage.Claims; n > recorded {
		t.Errorf("%d outcomes of %d claims that were not imported", n, recorded)
	}
	h.pass()
	want(t, "claims after another pass", h.policy().Status.Record.Claims, recorded+int32(n))
	h.run(2 * time.Hour)
	want(t, "claims after it was saved", h.policy().Status.Record.Claims, recorded+int32(n))
}
