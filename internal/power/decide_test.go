package power

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/fault"
)

// now is the time of every case; installed was 100 hours before.
var (
	now       = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	installed = now.Add(-100 * time.Hour)
)

// with changes one thing about an observation.
type with func(*Snapshot)

// seen is a cluster that wants to run, runs, and has for an hour, but for what is changed.
func seen(changes ...with) Snapshot {
	s := Snapshot{
		Seed: "uid", Installed: true, Actuator: true, Platform: "sim", InfraID: "infra",
		InstalledAt: installed,
	}
	for _, c := range append([]with{machines("m0:Running w0:Running"), ready("m0 w0"), came("Running", time.Hour)}, changes...) {
		c(&s)
	}
	if s.Record != nil && s.Spoke.ResumeProbe == (ResumeProbe{}) {
		acted(&s)
	}
	return s
}

// machines sets the machines: "name:State …".
func machines(text string) with {
	return func(s *Snapshot) {
		s.Machines = nil
		for _, field := range strings.Fields(text) {
			name, state, _ := strings.Cut(field, ":")
			s.Machines = append(s.Machines, cloud.Machine{Name: name, State: cloud.State(state), Reason: "odd"})
		}
	}
}

// ready makes the API answer and the nodes ready, with a fresh sign of life.
func ready(names string) with {
	return func(s *Snapshot) {
		s.Spoke = Spoke{Queried: true, Reachable: true}
		for _, n := range strings.Fields(names) {
			s.Spoke.Nodes = append(s.Spoke.Nodes, Node{Name: n, Ready: true, Renewed: now.Add(-time.Second), ReadySince: installed})
		}
	}
}

func silent(s *Snapshot)         { s.Spoke = Spoke{Queried: true, UnreachableReason: "connection refused"} }
func unasked(s *Snapshot)        { s.Spoke = Spoke{} }
func unready(s *Snapshot)        { s.Spoke.Nodes[1].Ready = false }
func withoutRuntime(s *Snapshot) { s.Spoke.Nodes[1].Problem = "containerd ended: no such plugin" }
func stale(s *Snapshot)          { s.Spoke.Nodes[1].Renewed = now.Add(-time.Hour) }
func acted(s *Snapshot) {
	s.Spoke.ResumeProbe = ResumeProbe{Mark: record{PowerTransition: *s.Record}.probeMark(), Done: true}
}

func lazy(s *Snapshot) {
	s.Spoke.ResumeProbe = ResumeProbe{Mark: record{PowerTransition: *s.Record}.probeMark()}
}
func unsent(s *Snapshot)  { s.Spoke.ResumeProbe = ResumeProbe{Mark: "of the resume before"} }
func closed(s *Snapshot)  { s.Spoke.ResumeProbe = ResumeProbe{Refused: "forbidden"} }
func noNodes(s *Snapshot) { s.Spoke.Nodes = nil }
func apiOnly(s *Snapshot) {
	s.Machines = cloud.Machines{{Name: "m0", State: cloud.Running, NoNode: true}}
}
func hibernate(s *Snapshot)     { s.DesiredState = hivev1.PowerHibernating }
func fake(s *Snapshot)          { s.Fake, s.Actuator = true, false }
func deleted(s *Snapshot)       { s.Deleted = true }
func paused(s *Snapshot)        { s.Paused = true }
func installing(s *Snapshot)    { s.Installed = false }
func justInstalled(s *Snapshot) { s.InstalledAt = now.Add(-time.Second) }
func unactuated(s *Snapshot)    { s.Actuator, s.Machines = false, nil }
func unclaimed(s *Snapshot)     { s.Pooled = true }
func anew(s *Snapshot)          { s.Record = nil }
func skipping(s *Snapshot)      { s.SkipOperators = true }
func of(v string) with          { return func(s *Snapshot) { s.Version = v } }

func installedAs(v string) with { return func(s *Snapshot) { s.InstallVersion = v } }

// reports is the version that an OpenShift cluster reports in this pass, serves the one of its API server.
func reports(v string) with {
	return func(s *Snapshot) { s.Spoke.Version = Version{OpenShift: true, Desired: v} }
}
func serves(v string) with { return func(s *Snapshot) { s.Spoke.Version = Version{Desired: v} } }

func claimed(ago time.Duration) with {
	return func(s *Snapshot) { s.Pooled, s.ClaimedAt = true, now.Add(-ago) }
}

func limits(l Limits) with { return func(s *Snapshot) { s.Limits = l } }

func unobservable(err error) with {
	return func(s *Snapshot) { s.Machines, s.MachinesFailure = nil, NewFailure(err) }
}

// going opens the record of a transition that began so long ago.
func going(target string, ago time.Duration) with {
	return func(s *Snapshot) {
		s.Record = &hivev1.PowerTransition{Target: hivev1.PowerState(target), StartedAt: metav1.NewTime(now.Add(-ago))}
	}
}

// came is the record of one that ended so long ago, a minute after it began.
func came(target string, ago time.Duration) with {
	return func(s *Snapshot) {
		going(target, ago+time.Minute)(s)
		at := metav1.NewTime(now.Add(-ago))
		s.Record.FinishedAt = &at
	}
}

// operators makes it an OpenShift cluster, whose nodes have been ready so long: "name:settled|busy …".
func operators(readyFor time.Duration, text string) with {
	return func(s *Snapshot) {
		s.Spoke.OpenShift = true
		for i := range s.Spoke.Nodes {
			s.Spoke.Nodes[i].ReadySince = now.Add(-readyFor)
		}
		for _, field := range strings.Fields(text) {
			name, state, _ := strings.Cut(field, ":")
			s.Spoke.Operators = append(s.Spoke.Operators, Operator{Name: name, Settled: state == "settled"})
		}
	}
}

// brief is a decision in one line: action, word, reason of Hibernating, record.
func brief(d Plan) string {
	act := [...]string{"keep", "start", "stop", "hibernate", "hibernate inactive", "wake"}[d.Action]
	s := fmt.Sprintf("%s, %s, %s", act, d.PowerState, d.Hibernating.Reason)
	if d.Record == nil {
		return s
	}
	if d.CreateProbe != "" {
		s += ", probe"
	}
	switch {
	case d.Record.FinishedAt != nil && d.Record.FinishedAt.Time.Equal(now):
		s += ", arrived"
	case d.Record.StartedAt.Time.Equal(now):
		s += ", new record"
	}
	return s
}

// steadily reports whether d looks again at the pace of a steady cluster.
func steadily(d Plan) bool { return d.Next > time.Minute }

func TestNext(t *testing.T) {
	denied := fault.NewDenied("no credentials")
	for name, c := range map[string]struct {
		in   Snapshot
		want string
	}{
		"a running cluster is left running":                                 {seen(), "keep, Running, Running"},
		"an empty power state is Running":                                   {seen(came("Hibernating", time.Hour), machines("m0:Stopped")), "keep, StartingMachines, Resuming, new record"},
		"a cluster not installed yet is not touched":                        {seen(installing, hibernate, anew, unasked), "keep, , Initialized"},
		"power wanted during the install is acted on after it":              {seen(hibernate, anew), "keep, Stopping, Stopping, new record"},
		"a deleted cluster is not touched":                                  {seen(deleted, hibernate), "keep, Unknown, ClusterDeploymentDeleted"},
		"nor its power told, whether or not it answers":                     {seen(paused, silent), "keep, Unknown, PowerStatePaused"},
		"a paused cluster is not touched":                                   {seen(paused, hibernate), "keep, Unknown, PowerStatePaused"},
		"the first Running after an install goes through readiness":         {seen(anew, unready, justInstalled), "keep, WaitingForNodes, Resuming"},
		"a cluster whose machines never stopped needs no new sign of life":  {seen(anew, stale), "keep, Running, Running, arrived"},
		"machines found stopped after an install are told now":              {seen(anew, machines("m0:Running w0:Stopped")), "keep, StartingMachines, Resuming, new record"},
		"so are those that stop before the first Running":                   {seen(going("Running", 100*time.Hour), machines("m0:Running w0:Stopped")), "keep, StartingMachines, Resuming, new record"},
		"a record is opened before the machines are stopped":                {seen(hibernate), "keep, Stopping, Stopping, new record"},
		"then the machines are stopped":                                     {seen(hibernate, going("Hibernating", time.Second)), "stop, Stopping, Stopping"},
		"machines that stop are waited for":                                 {seen(hibernate, going("Hibernating", time.Second), machines("m0:Stopping w0:Stopped")), "keep, WaitingForMachinesToStop, Stopping"},
		"a machine that goes on running is told again":                      {seen(hibernate, going("Hibernating", time.Second), machines("m0:Running w0:Stopped")), "stop, Stopping, Stopping"},
		"a machine that is starting is stopped":                             {seen(hibernate, going("Hibernating", time.Second), machines("m0:Starting w0:Stopped")), "stop, Stopping, Stopping"},
		"with every machine stopped the cluster hibernates":                 {seen(hibernate, going("Hibernating", time.Minute), machines("m0:Stopped w0:Stopped")), "keep, Hibernating, Hibernating, arrived"},
		"a hibernating cluster is left hibernating":                         {seen(hibernate, came("Hibernating", time.Hour), machines("m0:Stopped")), "keep, Hibernating, Hibernating"},
		"a machine that runs in a hibernating cluster opens a stop":         {seen(hibernate, came("Hibernating", time.Hour), machines("m0:Running w0:Stopped")), "keep, Stopping, Stopping, new record"},
		"a machine that stopped in a running cluster opens a resume":        {seen(machines("m0:Running w0:Stopped")), "keep, StartingMachines, Resuming, new record"},
		"machines are started":                                              {seen(going("Running", time.Second), machines("m0:Stopped w0:Stopped")), "start, StartingMachines, Resuming"},
		"one machine that stays stopped is started again":                   {seen(going("Running", time.Minute), machines("m0:Running w0:Stopped")), "start, StartingMachines, Resuming"},
		"machines that start are waited for":                                {seen(going("Running", time.Second), machines("m0:Running w0:Starting")), "keep, WaitingForMachines, Resuming"},
		"an API that boots is waited for":                                   {seen(going("Running", time.Minute), silent), "keep, WaitingForNodes, Resuming"},
		"no node is not ready":                                              {seen(going("Running", time.Minute), noNodes), "keep, WaitingForNodes, Resuming"},
		"machines that are no nodes need neither nodes nor controllers":     {seen(going("Running", time.Minute), noNodes, unsent, apiOnly), "keep, Running, Running, probe, arrived"},
		"machines that are no nodes need an API that answers":               {seen(going("Running", time.Minute), noNodes, silent, apiOnly), "keep, WaitingForNodes, Resuming"},
		"a node that is not ready is waited for":                            {seen(going("Running", time.Minute), unready), "keep, WaitingForNodes, Resuming"},
		"a resume that has just been noted sends nothing yet":               {seen(came("Hibernating", time.Hour), silent), "keep, WaitingForNodes, Resuming, new record"},
		"when the API answers the controller manager is asked to act":       {seen(going("Running", time.Minute), unready, unsent), "keep, WaitingForNodes, Resuming, probe"},
		"until it has acted the cluster does not run":                       {seen(going("Running", time.Minute), lazy), "keep, WaitingForControllers, Resuming"},
		"that it acted in the resume before is not enough":                  {seen(going("Running", time.Minute), unsent), "keep, WaitingForControllers, Resuming, probe"},
		"a controller manager that never acts fails a resume":               {seen(going("Running", time.Hour), lazy, limits(Limits{ToRunning: time.Hour})), "keep, FailedToStart, FailedToStart"},
		"a cluster that takes no probe is not held up":                      {seen(going("Running", time.Minute), closed), "keep, Running, Running, arrived"},
		"a cluster that has arrived is not asked to act":                    {seen(unsent), "keep, Running, Running"},
		"nor is one that comes up after its install":                        {seen(anew, unsent), "keep, Running, Running, arrived"},
		"nor one that cannot hibernate":                                     {seen(unactuated, going("Running", time.Hour), unsent), "keep, Running, Unsupported, arrived"},
		"with machines, API and nodes the cluster runs":                     {seen(going("Running", time.Minute)), "keep, Running, Running, arrived"},
		"operators are given time after the nodes":                          {seen(going("Running", time.Hour), operators(time.Minute, "dns:settled")), "keep, PausingForClusterOperatorsToSettle, Resuming"},
		"busy operators are waited for":                                     {seen(going("Running", time.Hour), operators(3*time.Minute, "dns:settled etcd:busy")), "keep, WaitingForClusterOperators, Resuming"},
		"an OpenShift cluster without operators is not ready":               {seen(going("Running", time.Hour), operators(3*time.Minute, "")), "keep, WaitingForClusterOperators, Resuming"},
		"settled operators complete a resume":                               {seen(going("Running", time.Hour), operators(3*time.Minute, "dns:settled")), "keep, Running, Running, arrived"},
		"a label leaves operators out":                                      {seen(going("Running", time.Hour), operators(0, "dns:busy"), skipping), "keep, Running, Running, arrived"},
		"operators busy with an upgrade do not make a running cluster less": {seen(operators(0, "dns:busy")), "keep, Running, Running"},
		"after an install operators are not paused for":                     {seen(anew, operators(0, "dns:settled")), "keep, Running, Running, arrived"},

		"a platform without actuator is unsupported and watched":     {seen(unactuated, hibernate, anew), "keep, Running, Unsupported, arrived"},
		"an unsupported cluster without API is not ready":            {seen(unactuated, silent), "keep, WaitingForNodes, Unsupported"},
		"OpenShift before 4.4.8 is unsupported":                      {seen(of("4.4.7"), hibernate), "keep, Running, Unsupported"},
		"a candidate of 4.4.8 is before 4.4.8":                       {seen(of("4.4.8-rc.1"), hibernate), "keep, Running, Unsupported"},
		"4.4.10 is after 4.4.8":                                      {seen(of("4.4.10"), hibernate), "keep, Stopping, Stopping, new record"},
		"a version of Kubernetes is not one of OpenShift":            {seen(of("v1.36.3"), hibernate), "keep, Stopping, Stopping, new record"},
		"a version nobody can read does not stand in the way":        {seen(of("latest"), hibernate), "keep, Stopping, Stopping, new record"},
		"an unsupported cluster's machines are not touched":          {seen(of("4.3.0"), machines("m0:Stopped")), "keep, StartingMachines, Unsupported, new record"},
		"not even those of one on its way up":                        {seen(of("4.3.0"), going("Running", time.Hour), machines("m0:Stopped")), "keep, StartingMachines, Unsupported"},
		"an upgrade lifts unsupported":                               {seen(of("4.4.8"), hibernate), "keep, Stopping, Stopping, new record"},
		"the installed version counts until the cluster reports one": {seen(installedAs("4.3.0"), hibernate), "keep, Running, Unsupported"},
		"an upgrade counts in the pass that sees it":                 {seen(installedAs("4.3.0"), of("4.3.0"), reports("4.4.8"), hibernate), "keep, Stopping, Stopping, new record"},
		"and after it": {seen(installedAs("4.3.0"), of("4.4.8"), hibernate), "keep, Stopping, Stopping, new record"},
		"an upgrade that does not suffice does not count":            {seen(installedAs("4.3.0"), of("4.3.0"), reports("4.4.7"), hibernate), "keep, Running, Unsupported"},
		"no cluster keeps itself awake by what it reports":           {seen(installedAs("4.18.20"), of("4.3.0"), reports("4.3.0"), hibernate), "keep, Stopping, Stopping, new record"},
		"not one of plain Kubernetes either":                         {seen(installedAs("v1.36.3"), reports("4.3.0"), hibernate), "keep, Stopping, Stopping, new record"},
		"what others installed is as it reports":                     {seen(reports("4.3.0"), hibernate), "keep, Running, Unsupported"},
		"an API without ClusterVersions yet does not make it able":   {seen(installedAs("4.3.0"), serves("v1.16.2"), hibernate), "keep, Running, Unsupported"},
		"nor does it without an installed version":                   {seen(of("4.3.0"), serves("v1.16.2"), hibernate), "keep, Running, Unsupported"},
		"an unsupported cluster is not hibernated by its age":        {seen(unactuated, limits(Limits{HibernateAfter: time.Minute})), "keep, Running, Unsupported"},
		"a fake cluster runs at once":                                {seen(fake, came("Hibernating", time.Hour)), "keep, Running, Running, arrived"},
		"a fake cluster hibernates at once":                          {seen(fake, hibernate), "keep, Hibernating, Hibernating, arrived"},
		"a paused fake cluster is not touched either":                {seen(fake, paused, hibernate), "keep, Unknown, PowerStatePaused"},
		"nor is one that is to run":                                  {seen(fake, paused, came("Hibernating", time.Hour)), "keep, Unknown, PowerStatePaused"},
		"a fake cluster has no timeouts":                             {seen(fake, going("Running", time.Hour), limits(Limits{ToRunning: 1})), "keep, Running, Running, arrived"},
		"a resume that takes too long has failed":                    {seen(going("Running", time.Hour), unready, limits(Limits{ToRunning: time.Hour})), "keep, FailedToStart, FailedToStart"},
		"a failed resume is still tried":                             {seen(going("Running", time.Hour), machines("m0:Stopped"), limits(Limits{ToRunning: time.Hour})), "start, FailedToStart, FailedToStart"},
		"a failed resume that gets there after all runs":             {seen(going("Running", 2*time.Hour), limits(Limits{ToRunning: time.Hour})), "keep, Running, Running, arrived"},
		"a stop that takes too long has failed":                      {seen(hibernate, going("Hibernating", time.Hour), limits(Limits{ToHibernating: time.Hour})), "stop, FailedToStop, FailedToStop"},
		"no timeout waits for ever":                                  {seen(going("Running", 1000*time.Hour), unready), "keep, WaitingForNodes, Resuming"},
		"machines that cannot be observed fail a resume":             {seen(going("Running", time.Second), unobservable(denied), silent), "keep, FailedToStart, FailedToStart"},
		"machines that cannot be observed fail a stop":               {seen(hibernate, going("Hibernating", time.Second), unobservable(denied)), "keep, FailedToStop, FailedToStop"},
		"a platform that asks to wait has not failed":                {seen(hibernate, going("Hibernating", time.Second), unobservable(fault.NewWait(0, "throttled"))), "keep, WaitingForMachinesToStop, Stopping"},
		"a running cluster with ready nodes survives a cloud outage": {seen(unobservable(denied)), "keep, Running, Running"},
		"a hibernating cluster survives a cloud outage":              {seen(hibernate, came("Hibernating", time.Hour), unobservable(denied)), "keep, Hibernating, Hibernating"},
		"a failed machine fails a resume and is started again":       {seen(going("Running", time.Second), machines("m0:Running w0:Failed")), "start, FailedToStart, FailedToStart"},

		"hibernateAfter counts from becoming Running":              {seen(limits(Limits{HibernateAfter: time.Hour})), "hibernate, Running, Running"},
		"hibernateAfter waits":                                     {seen(limits(Limits{HibernateAfter: 61 * time.Minute})), "keep, Running, Running"},
		"hibernateAfter is ignored in a pool before the claim":     {seen(unclaimed, limits(Limits{HibernateAfter: time.Minute})), "keep, Running, Running"},
		"hibernateAfter counts from the claim if that is later":    {seen(claimed(time.Minute), limits(Limits{HibernateAfter: 30 * time.Minute})), "keep, Running, Running"},
		"hibernateAfter counts from Running if the claim is older": {seen(claimed(50*time.Hour), limits(Limits{HibernateAfter: 61 * time.Minute})), "keep, Running, Running"},
		"a pause is not ended by hibernateAfter":                   {seen(paused, limits(Limits{HibernateAfter: time.Minute})), "keep, Unknown, PowerStatePaused"},
		"a hibernating cluster is not asked to hibernate":          {seen(hibernate, limits(Limits{HibernateAfter: time.Minute}), machines("m0:Stopped"), came("Hibernating", time.Hour)), "keep, Hibernating, Hibernating"},
		"hibernateAfter does not count from no time at all":        {seen(anew, limits(Limits{HibernateAfter: time.Hour}), func(s *Snapshot) { s.InstalledAt = time.Time{} }), "keep, WaitingForNodes, Resuming, new record"},
		"a claim without a time is none to hibernateAfter":         {seen(unclaimed, came("Running", 90*time.Hour), limits(Limits{HibernateAfter: time.Minute})), "keep, Running, Running"},
		"hibernateAfter ends a resume that has timed out":          {seen(going("Running", 3*time.Hour), silent, limits(Limits{ToRunning: time.Hour, HibernateAfter: 2 * time.Hour})), "hibernate, FailedToStart, FailedToStart"},
		"hibernateAfter counts from the timeout then":              {seen(going("Running", 3*time.Hour-time.Second), silent, limits(Limits{ToRunning: time.Hour, HibernateAfter: 2 * time.Hour})), "keep, FailedToStart, FailedToStart"},
		"hibernateAfter does not end a resume that goes on":        {seen(going("Running", 50*time.Minute), silent, limits(Limits{ToRunning: time.Hour, HibernateAfter: time.Second})), "keep, WaitingForNodes, Resuming"},
		"a resume that was just asked for has its time":            {seen(came("Hibernating", 50*time.Hour), machines("m0:Stopped"), limits(Limits{HibernateAfter: time.Hour})), "keep, StartingMachines, Resuming, new record"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(c.in, now)
			if diff := cmp.Diff(c.want, brief(d)); diff != "" {
				t.Error(diff)
			}
			agree(t, d)
		})
	}
}

// agree fails unless the conditions and the word are consistent.
func agree(t *testing.T, d Plan) {
	t.Helper()
	asleep, up := d.Hibernating.Status == corev1.ConditionTrue, d.Ready.Status == corev1.ConditionTrue
	if asleep && up {
		t.Errorf("Hibernating and Ready are both True: %s", d)
	}
	if asleep != (d.PowerState == hivev1.StatusHibernating) || up != (d.PowerState == hivev1.StatusRunning) {
		t.Errorf("powerState %q with Hibernating %s, Ready %s", d.PowerState, d.Hibernating.Status, d.Ready.Status)
	}
}

func TestNoTransitionEndsBeforeItBegins(t *testing.T) {
	for name, s := range map[string]Snapshot{
		"a fake spare that is to hibernate in the second of its install": seen(fake, hibernate, anew, func(s *Snapshot) { s.InstalledAt = now }),
	} {
		t.Run(name, func(t *testing.T) {
			if r := Decide(s, now).Record; r.FinishedAt == nil || r.FinishedAt.Before(&r.StartedAt) {
				t.Errorf("from %s to %s", r.StartedAt, r.FinishedAt)
			}
		})
	}
}

func TestAClusterWithoutAPlatformSaysWhatToDo(t *testing.T) {
	d := Decide(seen(unactuated, func(s *Snapshot) { s.Platform = "" }), now)
	if want := "spec.platform names no platform, so hotspare cannot start or stop the machines: restore the platform that the cluster was created with."; d.Hibernating.Message != want {
		t.Errorf("told %q", d.Hibernating.Message)
	}
}

func TestAnObstacleOfTheClusterIsReported(t *testing.T) {
	const why = "Recipe \"x\" has no programs start and stop."
	d := Decide(seen(unactuated, hibernate, func(s *Snapshot) { s.PlatformObstacle = why }), now)
	if d.Hibernating.Message != why || d.Hibernating.Reason != hivev1.ReasonUnsupported || d.Action != NoAction {
		t.Errorf("Hibernating is %s: %q, and the action %q", d.Hibernating.Reason, d.Hibernating.Message, d.Action)
	}
}

func TestMachinesThatFailAreTold(t *testing.T) {
	tests := map[string]struct {
		seen Snapshot
		want bool
	}{
		"a machine has failed":               {seen(machines("m0:Failed w0:Running"), came("Running", time.Hour)), true},
		"there is none":                      {seen(machines(""), silent), true},
		"they start":                         {seen(machines("m0:Starting w0:Starting"), silent), false},
		"all run, and the API does not come": {seen(silent), false},
		"the platform cannot be asked": {seen(silent, func(s *Snapshot) {
			s.Record, s.Machines, s.MachinesFailure = nil, nil, &Failure{Kind: fault.Denied, Message: "the key has expired"}
		}), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Decide(tc.seen, now); got.Record.MachinesFailed != tc.want {
				t.Errorf("machinesFailed is %t: %s", got.Record.MachinesFailed, got)
			}
		})
	}
}

func TestThatMachinesFailedIsRememberedUntilTheyRun(t *testing.T) {
	s := seen(machines("m0:Failed w0:Stopped"), silent, func(s *Snapshot) {
		s.Record = &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: apiTime(now.Add(-time.Minute))}
	})
	for _, step := range []struct {
		change with
		want   bool
	}{
		{func(*Snapshot) {}, true},
		{machines("m0:Starting w0:Starting"), true},
		{func(s *Snapshot) { machines("m0:Running w0:Running")(s); ready("m0 w0")(s); acted(s) }, false},
	} {
		step.change(&s)
		d := Decide(s, now)
		if d.Record.MachinesFailed != step.want {
			t.Errorf("%v: machinesFailed is %t: %s", s.Machines, d.Record.MachinesFailed, d)
		}
		s.Record = d.Record
	}
}

func TestTheResumeProbeIsDeletedAtTheEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		in      Snapshot
		dismiss bool
		says    string
	}{
		"on the way up it stays":   {seen(going("Running", time.Minute), unready), false, "Waiting for nodes to be ready: w0."},
		"a node reports a problem": {seen(going("Running", time.Minute), unready, withoutRuntime), false, "Waiting for nodes to be ready: w0 (containerd ended: no such plugin)."},
		"when it is done it goes":  {seen(going("Running", time.Minute)), true, "The cluster is running."},
		"without one nothing goes": {seen(going("Running", time.Minute), closed), false, "The cluster is running. It is unknown whether its controller manager works: forbidden."},
	} {
		t.Run(name, func(t *testing.T) {
			if d := Decide(tc.in, now); d.DeleteProbe != tc.dismiss || d.Ready.Message != tc.says {
				t.Errorf("dismiss %t: %s; want %t: %s", d.DeleteProbe, d.Ready.Message, tc.dismiss, tc.says)
			}
		})
	}
}

func TestAPausedClusterIsReachableOrNot(t *testing.T) {
	for name, tc := range map[string]struct {
		in   Snapshot
		want condition.Value
	}{
		"it answers":                      {seen(paused), reachableValue},
		"it does not":                     {seen(paused, silent), condition.True(hivev1.ReasonErrorConnecting, "The cluster's API does not answer: connection refused.")},
		"it slept when it was paused":     {seen(paused, silent, came("Hibernating", time.Hour)), hibernatingValue},
		"and was woken by somebody else":  {seen(paused, came("Hibernating", time.Hour)), reachableValue},
		"it was going to sleep meanwhile": {seen(paused, silent, going("Hibernating", time.Hour)), condition.True(hivev1.ReasonErrorConnecting, "The cluster's API does not answer: connection refused.")},
	} {
		t.Run(name, func(t *testing.T) {
			if !tc.in.NeedsSpoke() || tc.in.NeedsResumeProbe() || tc.in.NeedsOperators() {
				t.Error("its API is to be asked, and for nothing but whether it is there")
			}
			if d := Decide(tc.in, now); d.Unreachable != tc.want || !steadily(d) {
				t.Errorf("%+v, again in %s; want %+v", d.Unreachable, d.Next, tc.want)
			}
		})
	}
}

func TestDriftIsNamedOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		in   Snapshot
		want string
	}{
		"machines that run":                      {seen(), ""},
		"one that stopped":                       {seen(machines("m0:Running w0:Stopped")), "w0"},
		"one that is on its way":                 {seen(going("Running", time.Minute), machines("m0:Running w0:Stopped")), ""},
		"one that starts by itself":              {seen(machines("m0:Running w0:Starting")), ""},
		"all after a flip":                       {seen(came("Hibernating", time.Hour), machines("m0:Stopped w0:Stopped")), ""},
		"one that runs in a hibernating cluster": {seen(hibernate, came("Hibernating", time.Hour), machines("m0:Stopped w0:Running")), "w0"},
		"those of a cluster nobody acts upon":    {seen(unactuated, machines("m0:Stopped")), ""},
		"those of a cluster just installed":      {seen(anew, machines("m0:Running w0:Stopped")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if d := Decide(tc.in, now); d.Drift != tc.want {
				t.Errorf("drift %q, want %q: %s", d.Drift, tc.want, d)
			}
		})
	}
}
