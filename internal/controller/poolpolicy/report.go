package poolpolicy

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/counts"
	"hotspare.io/hotspare/internal/sizing/policy"
	"hotspare.io/hotspare/internal/sizing/record"
	"hotspare.io/hotspare/internal/sizing/report"
)

// A conditionValue is a condition without its times.
type conditionValue struct {
	typ, reason, message string
	status               metav1.ConditionStatus
}

func isTrue(typ, reason, message string) conditionValue {
	return conditionValue{typ, reason, message, metav1.ConditionTrue}
}

func isFalse(typ, reason, message string) conditionValue {
	return conditionValue{typ, reason, message, metav1.ConditionFalse}
}

// reportInvalid reports which fields of the specification cannot be used, and whether claims are recorded; recorded is nil if
// that is not known. hotspare changes no counts then.
func (r *Reconciler) reportInvalid(
	ctx context.Context, p *v1alpha1.PoolPolicy, estimate *v1alpha1.EstimatedPrices, recorded *conditionValue, faults []policy.FieldError,
) error {
	var all []string
	for _, f := range faults {
		all = append(all, "spec."+f.Error())
	}
	message := strings.Join(all, "; ")
	if faults[0].Reason == reasonUnreadable {
		message = "The PoolPolicy " + faults[0].Problem
	}
	const idle = "The spec is not valid: condition Valid says why."
	conditions := []conditionValue{
		isFalse(v1alpha1.PolicyValid, faults[0].Reason, message),
		isFalse(v1alpha1.PolicyReady, v1alpha1.ReasonPolicyInvalid, idle), isFalse(v1alpha1.PolicyApplied, v1alpha1.ReasonPolicyInvalid, idle),
	}
	if recorded != nil {
		conditions = append(conditions, *recorded)
	}
	return r.patchStatus(ctx, p, &v1alpha1.PoolPolicyStatus{CountsSetBy: v1alpha1.CountsSetByUser, EstimatedPrices: estimate}, conditions...)
}

// reportObstacle reports why nothing can be decided.
func (r *Reconciler) reportObstacle(ctx context.Context, p *v1alpha1.PoolPolicy, s *observation) error {
	o := s.obstacle
	return r.patchStatus(ctx, p, &v1alpha1.PoolPolicyStatus{CountsSetBy: v1alpha1.CountsSetByUser}, understood,
		isFalse(v1alpha1.PolicyReady, o.reason, o.message), isFalse(v1alpha1.PolicyApplied, o.reason, o.message),
		isFalse(v1alpha1.PolicyRecordUsable, o.reason, o.message))
}

var understood = isTrue(v1alpha1.PolicyValid, v1alpha1.ReasonUnderstood, "The specification is valid")

// reportStatus writes what was decided, and what it is based on.
func (r *Reconciler) reportStatus(ctx context.Context, p *v1alpha1.PoolPolicy, s *observation, plan counts.Plan, refused refusals) error {
	known := p.Status.ManualChange
	st := newStatus(s, plan, refused.counts == "")
	applied := describeApplied(p, s, plan, refused.String())
	if s.snapshot.Auto && plan.Manual == nil && refused.counts == "" {
		st.CountsSetBy = v1alpha1.CountsSetByPolicy
	}
	if err := r.patchStatus(ctx, p, st, understood, describeReady(plan), applied, describeRecord(s.record, r.Clock.Now())); err != nil {
		return err
	}
	if m := st.ManualChange; m != nil && (known == nil || known.PoolCounts != m.PoolCounts) {
		r.Events.Eventf(p, s.pool, corev1.EventTypeNormal, v1alpha1.ReasonManualChange, "SetCounts", "%s", applied.message)
	}
	return nil
}

// newStatus returns the status without its conditions. Accepted is set if the API server has accepted the counts of the plan.
func newStatus(s *observation, plan counts.Plan, accepted bool) *v1alpha1.PoolPolicyStatus {
	t, now := s.record.tracker, s.snapshot.Sizing.Now
	at := metav1.NewTime(now.Truncate(time.Second))
	st := &v1alpha1.PoolPolicyStatus{
		CountsSetBy: v1alpha1.CountsSetByUser,
		Recommended: &v1alpha1.RecommendedCounts{Running: recommendedCount(plan.Recommended.Running), Size: recommendedCount(plan.Recommended.Size)},
		Static:      poolCounts(plan.Static),
		Resumes:     measured(t.Resumes), Installs: measured(t.Installs), ShallowResumes: measuredAtDepths(t),
		Record: &v1alpha1.DemandRecord{
			ConfigMap: record.ConfigMapName(s.pool.Name), Claims: int32(min(t.Demand.Claims(), math.MaxInt32)), Since: metav1.NewTime(t.Since.Truncate(time.Second)),
		},
		EstimatedPrices: s.policy.Estimate,
		ComputedAt:      &at,
	}
	if l := s.ladder; l != nil {
		st.Recommended.Sleep = &v1alpha1.RecommendedLadder{Ladder: l.String(), Reason: l.Reason}
	}
	if plan.Recommended.Computed {
		st.ExpectedClaimsPerHour = formatNumber(plan.Recommended.ExpectedClaims)
	}
	if c := plan.Recommended.Coverage; c.Claims >= 1 {
		st.Coverage = &v1alpha1.PolicyCoverage{Claims: int32(c.Claims), Promised: formatExactShare(c.Promised), Seen: formatShare(c.Seen)}
	}
	st.Forecast = s.describeForecast()
	st.Month = describeMonth(report.NewMonth(&t.Details, s.policy.Limits.Prices, now))
	switch {
	case plan.Apply != nil && accepted:
		st.Applied = poolCounts(plan.Apply.Setting)
	case s.snapshot.Applied != nil:
		st.Applied = poolCounts(s.snapshot.Applied.Setting)
	}
	if m := plan.Manual; m != nil {
		st.ManualChange = &v1alpha1.ManualChange{PoolCounts: *poolCounts(m.Setting), Since: metav1.NewTime(m.Since), Until: metav1.NewTime(m.Until), By: m.By}
	}
	return st
}

// describeForecast returns the band of the next hour, and how good earlier ones were; nil while nothing is
// computed.
func (o *observation) describeForecast() *v1alpha1.PolicyForecast {
	t := o.record.tracker
	f := sizing.ForecastHour(o.snapshot.Sizing)
	if f == nil {
		return nil
	}
	out := &v1alpha1.PolicyForecast{Low: int32(f.Low), High: int32(f.High)}
	if c := report.CompareForecasts(&t.Record, t.Since, t.Until); c != nil {
		out.Compared, out.Within = int32(c.Forecasts), formatShare(c.WithinShare())
	}
	return out
}

func describeMonth(m report.Month) *v1alpha1.PolicyMonth {
	out := &v1alpha1.PolicyMonth{Month: m.Month, RunningHours: formatAmount(m.RunningHours), HibernatingHours: formatAmount(m.HibernatingHours)}
	c := m.Costs
	if c == nil {
		return out
	}
	out.Cost, out.SavedByHibernating = formatAmount(c.Total), formatAmount(c.SavedByHibernating)
	if !m.ComparedSince.IsZero() {
		out.CouldSave, out.SavedByPolicy = formatAmount(c.CouldSave), formatAmount(c.SavedByPolicy)
	}
	return out
}

// formatAmount writes an amount with at most two digits after the point.
func formatAmount(v float64) string {
	text := strconv.FormatFloat(math.Round(100*v)/100, 'f', -1, 64)
	if text == "-0" {
		return "0"
	}
	return text
}

func recommendedCount(t sizing.Target) v1alpha1.RecommendedCount {
	return v1alpha1.RecommendedCount{Count: int32(t.Count), Cause: string(t.Cause), Reason: t.Reason}
}

func poolCounts(s sizing.Setting) *v1alpha1.PoolCounts {
	return &v1alpha1.PoolCounts{Running: int32(s.Running), Size: int32(s.Size)}
}

func measured(d record.Durations) *v1alpha1.MeasuredDurations {
	if len(d) == 0 {
		return nil
	}
	out := &v1alpha1.MeasuredDurations{Count: int32(len(d)), Failed: int32(d.Failed())}
	if median := d.Quantile(0.5); median > 0 {
		out.Median, out.P90 = median.String(), d.Quantile(0.9).String()
	}
	return out
}

// measuredAtDepths returns the resumes from shallow depths that were seen.
func measuredAtDepths(t *record.Tracker) []v1alpha1.ShallowResumes {
	var out []v1alpha1.ShallowResumes
	for _, depth := range sizing.ShallowDepths() {
		if m := measured(*t.ShallowResumes.Of(depth)); m != nil {
			out = append(out, v1alpha1.ShallowResumes{Depth: string(depth), MeasuredDurations: *m})
		}
	}
	return out
}

// formatNumber writes a number with two significant digits, so that it does not change all the time.
func formatNumber(n float64) string {
	if n <= 0 {
		return "0"
	}
	unit := math.Pow(10, math.Floor(math.Log10(n))-1)
	return fmt.Sprintf("%.4g", math.Round(n/unit)*unit)
}

// formatShare writes a share with one digit after the point, rounded down: it does not promise too much.
func formatShare(x float64) string { return fmt.Sprintf("%g%%", math.Floor(1000*x+1e-9)/10) }

// formatExactShare writes a share that somebody has chosen, with all its digits: a policy accepts six after the point.
func formatExactShare(x float64) string {
	return strconv.FormatFloat(math.Round(x*1e8)/1e6, 'f', -1, 64) + "%"
}

func describeReady(plan counts.Plan) conditionValue {
	switch rec := plan.Recommended; {
	case rec.Computed && rec.Fallback == "":
		return isTrue(v1alpha1.PolicyReady, v1alpha1.ReasonComputed, "The counts are computed from the demand.")
	case rec.Computed:
		return isFalse(v1alpha1.PolicyReady, v1alpha1.ReasonNotTrusted, "hotspare recommends no counts below your own setting: "+rec.Fallback)
	default:
		return isFalse(v1alpha1.PolicyReady, v1alpha1.ReasonLearning, "Your own setting is recommended: "+rec.Fallback)
	}
}

func describeApplied(p *v1alpha1.PoolPolicy, s *observation, plan counts.Plan, refusal string) conditionValue {
	switch {
	case !s.snapshot.Auto:
		return isFalse(v1alpha1.PolicyApplied, v1alpha1.ReasonRecommendOnly, "The mode is Recommend: the pool keeps the counts that you set.")
	case plan.Manual != nil:
		by := ""
		if plan.Manual.By != "" {
			by = " by " + plan.Manual.By
		}
		before := ""
		if refusal != "" {
			before = refusal + " "
		}
		return isFalse(v1alpha1.PolicyApplied, v1alpha1.ReasonManualChange, fmt.Sprintf(
			"%sThe counts were changed by hand%s, and hotspare keeps them until midnight in %s, %s."+
				" To end this now, a user who may patch both the policy and the pool can run: kubectl annotate -n %s poolpolicy %s %s=",
			before, by, s.policy.Zone, plan.Manual.Until.Format(time.RFC3339), p.Namespace, p.Name, v1alpha1.AnnotationResumeSizing))
	case refusal != "":
		return isFalse(v1alpha1.PolicyApplied, v1alpha1.ReasonRefused, refusal)
	default:
		return isTrue(v1alpha1.PolicyApplied, v1alpha1.ReasonApplied, "The pool has the recommended counts.")
	}
}

// setAsidePeriod is how long it is reported that a record was set aside: until counts are computed again.
const setAsidePeriod = 7 * 24 * time.Hour

func describeRecord(s *storedRecord, now time.Time) conditionValue {
	switch {
	case s.problem != nil:
		return isFalse(v1alpha1.PolicyRecordUsable, s.problem.reason, s.problem.message)
	case s.refusal != "":
		return isFalse(v1alpha1.PolicyRecordUsable, v1alpha1.ReasonRefused, s.refusal)
	case s.tracker.SetAside != "" && now.Sub(s.tracker.Since) < setAsidePeriod:
		return isFalse(v1alpha1.PolicyRecordUsable, v1alpha1.ReasonRecordSetAside, fmt.Sprintf(
			"The record of claims could not be read (%s): hotspare has kept it in the same ConfigMap, under keys that begin with %s, and began another."+
				" Restore the ConfigMap from a backup, or wait until enough was recorded.",
			s.tracker.SetAside, record.SetAsidePrefix))
	default:
		return isTrue(v1alpha1.PolicyRecordUsable, v1alpha1.ReasonRecorded, "Claims are recorded.")
	}
}

// refreshInterval is how long reasons and numbers are kept in a status that says the same otherwise: they
// change every minute, and nobody waits for them.
const refreshInterval = 15 * time.Minute

// monthInterval is how long the costs of a month are kept in a status that says the same otherwise: they grow all the
// time, also of a pool of which nobody claims anything.
const monthInterval = time.Hour

// patchStatus writes a status if it says something new.
func (r *Reconciler) patchStatus(ctx context.Context, p *v1alpha1.PoolPolicy, st *v1alpha1.PoolPolicyStatus, conditions ...conditionValue) error {
	before := p.DeepCopy()
	now := r.Clock.Now()
	st.ObservedGeneration = p.Generation
	for _, c := range before.Status.Conditions {
		st.Conditions = append(st.Conditions, *c.DeepCopy())
	}
	for _, c := range conditions {
		meta.SetStatusCondition(&st.Conditions, metav1.Condition{
			Type: c.typ, Status: c.status, Reason: c.reason, Message: c.message, ObservedGeneration: p.Generation,
			LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		})
	}
	p.Status = *st
	kstatus.ReportPoolPolicy(p, now)
	if isRecent(before.Status.ComputedAt, now) && saysTheSame(&before.Status, &p.Status) {
		return nil
	}
	if unchanged := p.Status.DeepCopy(); before.Status.ComputedAt != nil && unchanged.ComputedAt != nil {
		unchanged.ComputedAt = before.Status.ComputedAt
		if now.Sub(before.Status.ComputedAt.Time) < monthInterval {
			unchanged.Month, unchanged.Forecast = before.Status.Month, before.Status.Forecast
		}
		if equality.Semantic.DeepEqual(*unchanged, before.Status) {
			return nil
		}
	}
	if _, err := patch.Status(ctx, r.Client, before, p); err != nil {
		return fmt.Errorf("reporting on PoolPolicy %s: %w", client.ObjectKeyFromObject(p), err)
	}
	for _, typ := range []string{v1alpha1.PolicyValid, v1alpha1.PolicyRecordUsable} {
		was, is := meta.FindStatusCondition(before.Status.Conditions, typ), meta.FindStatusCondition(p.Status.Conditions, typ)
		if is != nil && is.Status == metav1.ConditionFalse && (was == nil || was.Message != is.Message) {
			r.Events.Eventf(p, nil, corev1.EventTypeWarning, is.Reason, "Report", "%s", is.Message)
		}
	}
	return nil
}

func isRecent(at *metav1.Time, now time.Time) bool {
	return at != nil && now.Sub(at.Time) < refreshInterval && !at.After(now)
}

// saysTheSame reports whether two statuses differ in their reasons and numbers at most.
func saysTheSame(a, b *v1alpha1.PoolPolicyStatus) bool {
	x, y := a.DeepCopy(), b.DeepCopy()
	for _, st := range []*v1alpha1.PoolPolicyStatus{x, y} {
		st.ExpectedClaimsPerHour, st.Coverage, st.Resumes, st.Installs, st.ComputedAt = "", nil, nil, nil, nil
		st.Forecast, st.Month, st.ShallowResumes = nil, nil, nil
		if st.Record != nil {
			st.Record.Claims = 0
		}
		if rec := st.Recommended; rec != nil {
			rec.Running.Reason, rec.Size.Reason = "", ""
			if rec.Sleep != nil {
				rec.Sleep.Reason = ""
			}
		}
		for i := range st.Conditions {
			if st.Conditions[i].Type == v1alpha1.PolicyReady {
				st.Conditions[i].Message = ""
			}
		}
	}
	return equality.Semantic.DeepEqual(x, y)
}

// ListPolicies returns the status of every policy, by pool. c may read from caches.
func ListPolicies(ctx context.Context, c client.Reader) (map[client.ObjectKey]v1alpha1.PoolPolicyStatus, error) {
	var list v1alpha1.PoolPolicyList
	if err := c.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing PoolPolicies: %w", err)
	}
	out := make(map[client.ObjectKey]v1alpha1.PoolPolicyStatus, len(list.Items))
	for i := range list.Items {
		out[client.ObjectKeyFromObject(&list.Items[i])] = list.Items[i].Status
	}
	return out, nil
}
