package power

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/fault"
)

func TestString(t *testing.T) {
	for name, c := range map[string]struct {
		in   Snapshot
		want string
	}{
		"a stop":        {seen(hibernate, going("Hibernating", time.Minute)), "stop the machines; report Stopping: Waiting for machines to be stopped: m0, w0; check again in 6s"},
		"a resume":      {seen(going("Running", time.Second), machines("m0:Running w0:Stopped")), "start the machines; report StartingMachines: Waiting for machines to be running: w0; check again in 200ms"},
		"a timeout":     {seen(going("Running", time.Hour), unready, limits(Limits{ToRunning: 20 * time.Minute})), "leave the machines alone; report FailedToStart: Resuming timed out after 20m0s. Waiting for nodes to be ready: w0; check again in 30s"},
		"hibernation":   {seen(limits(Limits{HibernateAfter: time.Minute})), "request hibernation: hibernateAfter has passed"},
		"a fake":        {seen(fake), "leave the machines alone; report Running: The fake cluster is running"},
		"no actuator":   {seen(unactuated, func(s *Snapshot) { s.Seed = "" }), `leave the machines alone; report Running: The platform "sim" cannot start and stop machines; check again in 1m50.166136261s`},
		"not installed": {seen(installing, anew), "leave the machines alone; report not installed: The cluster is not installed yet"},
		"a complaint":   {seen(fake, func(s *Snapshot) { s.SpecProblem = "spec.x is ignored." }), "leave the machines alone; report Running: The fake cluster is running. spec.x is ignored"},
		"no machines":   {seen(machines("")), `leave the machines alone; report FailedToStart: The platform sim has no machine with infrastructure ID "infra"; check again in 5m0s`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(c.in, now).String(); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	for name, c := range map[string]struct {
		in   Snapshot
		want string
	}{
		"an API that answers is reachable":            {seen(), "False ClusterReachable"},
		"one that does not is not":                    {seen(silent), "True ErrorConnectingToCluster"},
		"a sleeping cluster is expected to be silent": {seen(hibernate, unasked, came("Hibernating", time.Hour), machines("m0:Stopped")), "True Hibernating"},
		"an API not asked is as it was":               {seen(hibernate, unasked), " "},
		"a fake running cluster is reachable":         {seen(fake, unasked), "False ClusterReachable"},
		"a fake sleeping cluster is not":              {seen(fake, unasked, hibernate), "True Hibernating"},
		"nothing is known before the install":         {seen(installing, unasked), "Unknown Initialized"},
	} {
		t.Run(name, func(t *testing.T) {
			v := Decide(c.in, now).Unreachable
			if got := string(v.Status) + " " + v.Reason; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAsksSpoke(t *testing.T) {
	for name, c := range map[string]struct {
		in   Snapshot
		want bool
	}{
		"a running cluster is asked":                          {seen(), true},
		"one that goes to sleep is not":                       {seen(hibernate), false},
		"one that sleeps is not":                              {seen(hibernate, machines("m0:Stopped")), false},
		"one without a running machine is not":                {seen(machines("m0:Starting")), false},
		"one with a machine that stays down is (D8)":          {seen(machines("m0:Running w0:Stopped")), true},
		"one without actuator is, whatever is wanted":         {seen(unactuated, hibernate), true},
		"one whose machines cannot be observed is":            {seen(unobservable(fault.NewDenied("no"))), true},
		"a fake one is not":                                   {seen(fake), false},
		"a paused one is, for nobody knows whether it sleeps": {seen(paused), true},
		"a deleted one is not":                                {seen(deleted), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.in.NeedsSpoke(); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestAsksVersion(t *testing.T) {
	for name, c := range map[string]struct {
		in   Snapshot
		want bool
	}{
		"a running cluster is asked":                        {seen(), true},
		"a resume is not held up by it":                     {seen(going("Running", time.Minute)), false},
		"a cluster that sleeps is not":                      {seen(hibernate, came("Hibernating", time.Hour)), false},
		"one that cannot hibernate is, whatever is wanted":  {seen(installedAs("4.3.0"), hibernate), true},
		"and so is one whose platform does not stop anyone": {seen(unactuated, hibernate), true},
		"a paused one is not":                               {seen(paused), false},
		"a fake one is not":                                 {seen(fake), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.in.NeedsVersion(); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestTheReportedVersion(t *testing.T) {
	for name, c := range map[string]struct {
		in   Snapshot
		want Version
	}{
		"is the one of OpenShift":                 {seen(installedAs("4.3.0"), reports("4.4.8")), Version{OpenShift: true, Desired: "4.4.8"}},
		"or of Kubernetes":                        {seen(installedAs("v1.36.2"), serves("v1.36.3")), Version{Desired: "v1.36.3"}},
		"of OpenShift it is not that":             {seen(of("4.3.0"), serves("v1.16.2")), Version{}},
		"and nothing while the cluster says none": {seen(installedAs("4.3.0")), Version{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Decide(c.in, now).Version); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPace(t *testing.T) {
	for name, c := range map[string]struct {
		in   Snapshot
		want time.Duration
	}{
		"a resume that just began is looked at at once":    {seen(going("Running", 0), unready), minInterval},
		"then after a tenth of the time waited":            {seen(going("Running", time.Minute), unready), 6 * time.Second},
		"and at least every half minute":                   {seen(going("Running", 10*time.Hour), unready), maxInterval},
		"a clock set back does no harm":                    {seen(going("Running", -time.Hour), unready), minInterval},
		"the deadline is not slept through":                {seen(going("Running", time.Minute), unready, limits(Limits{ToRunning: 61 * time.Second})), time.Second},
		"after the deadline it goes on":                    {seen(going("Running", time.Minute), unready, limits(Limits{ToRunning: time.Second})), 6 * time.Second},
		"a new record is acted on at once":                 {seen(hibernate), nextPassDelay},
		"hibernateAfter wakes by itself":                   {seen(limits(Limits{HibernateAfter: time.Hour + time.Second})), time.Second},
		"hibernateAfter wakes a fake cluster too":          {seen(fake, limits(Limits{HibernateAfter: 2 * time.Hour})), time.Hour},
		"a fake cluster is not looked at for its own sake": {seen(fake), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(c.in, now).Next; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
