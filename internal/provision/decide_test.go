package provision

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// a cluster that is marked, and has all it needs, changed by edits.
func snapshot(edits ...func(*Snapshot)) Snapshot {
	s := Snapshot{
		Now:     now,
		Cluster: Cluster{Name: "c", UID: "u", Marked: true, HasFinalizer: true, Executor: true},
		Needs: Needs{
			Platform: "aws", Platforms: []string{"aws"},
			ImageSet: Source{Name: "v4", Found: true}, InstallConfig: Source{Name: "config", Found: true},
		},
		Destroy: map[string]Answer{},
	}
	for _, edit := range edits {
		edit(&s)
	}
	return s
}

// attempts reads "0:failed@5m 1:provisioning": numbers and stages, when they
// failed, "destroyed" and a cross for what is not left. Attempt n has infraID x<n>.
func attempts(text string) func(*Snapshot) {
	return func(s *Snapshot) {
		for _, one := range strings.Fields(text) {
			var a Attempt
			name, destroyed := strings.CutSuffix(one, "†")
			name, ago, _ := strings.Cut(name, "@")
			if _, err := fmt.Sscanf(name, "%d:%s", &a.Number, &a.Stage); err != nil {
				panic(err)
			}
			if span, err := time.ParseDuration(ago); err == nil {
				a.FailedAt = now.Add(-span)
			}
			a.Destroyed, a.Name, a.InfraID, a.Reason = destroyed, "p"+name[:1], "x"+name[:1], "Quota"
			s.Attempts = append(s.Attempts, a)
		}
	}
}

func named(id string) func(*Snapshot) { return func(s *Snapshot) { s.Cluster.InfraID = id } }
func installs(o Outcome) func(*Snapshot) {
	return func(s *Snapshot) { s.Install = &Answer{Outcome: o, Message: "m", After: time.Minute} }
}

func prepares(o Outcome) func(*Snapshot) {
	return func(s *Snapshot) { s.Prepare = &Answer{Outcome: o, Message: "m", After: time.Minute} }
}

func destroys(id string, o Outcome) func(*Snapshot) {
	return func(s *Snapshot) { s.Destroy[id] = Answer{Outcome: o, Message: "m", After: time.Minute} }
}

func limited(n int) func(*Snapshot) { return func(s *Snapshot) { s.Cluster.Limit = &n } }
func deleted(s *Snapshot)           { s.Cluster.Deleting, s.Cluster.DeletedAt = true, now.Add(-time.Minute) }
func marked(s *Snapshot)            { s.Cluster.Stopped = true }
func installed(s *Snapshot)         { s.Cluster.Installed = true }
func opened(s *Snapshot)            { s.Deprovision.Exists = true }
func lacking(s *Snapshot)           { s.Needs.ImageSet.Found = false }
func powerless(s *Snapshot)         { s.Cluster.Executor = false }
func awaiting(left time.Duration) func(*Snapshot) {
	return func(s *Snapshot) { s.Cluster.BundleDue = now.Add(left) }
}
func noBundle(s *Snapshot)  { s.Cluster.BundleRefused = true }
func foreign(s *Snapshot)   { s.Cluster.Foreign = true }
func preserved(s *Snapshot) { s.Cluster.Preserved = true }
func failing(ago time.Duration) func(*Snapshot) {
	return func(s *Snapshot) { s.Cluster.DestroyFailedAt = now.Add(-ago) }
}

type edits []func(*Snapshot)

func TestDecide(t *testing.T) {
	for name, tt := range map[string]struct {
		in   edits
		want string
	}{
		"a new cluster is marked, and its first attempt recorded": {
			edits{func(s *Snapshot) { s.Cluster.Marked = false }}, "add the finalizer and labels to the cluster; record attempt 0 as c-0-620b7",
		},
		"a cluster that lacks something is not begun":        {edits{lacking}, "nothing"},
		"a fake cluster lacks nothing":                       {edits{lacking, func(s *Snapshot) { s.Cluster.Fake = true }}, "record attempt 0 as c-0-620b7"},
		"a fake attempt is named when it is installed":       {edits{attempts("0:complete"), func(s *Snapshot) { s.Cluster.Fake = true }}, "install attempt 0"},
		"a recorded attempt is named before it is begun":     {edits{attempts("0:provisioning")}, "publish the metadata of attempt 0; install attempt 0"},
		"a named attempt is asked about":                     {edits{attempts("0:provisioning"), named("x0")}, "install attempt 0"},
		"an attempt that lacks something is not asked about": {edits{attempts("0:provisioning"), named("x0"), lacking}, "nothing"},
		"a running attempt is looked at again":               {edits{attempts("0:provisioning"), named("x0"), installs(Running)}, "check again in 10s"},
		"an attempt that waits is asked when it says":        {edits{attempts("0:provisioning"), named("x0"), installs(Waiting)}, "check again in 1m0s"},
		"an attempt that is refused is tried again slowly":   {edits{attempts("0:provisioning"), named("x0"), installs(Refused)}, "check again in 10m0s"},
		"success is delivered before it is told, and completed last": {
			edits{attempts("0:provisioning"), named("x0"), installs(Succeeded)}, "store the credentials of attempt 0; last mark the cluster installed; last complete attempt 0",
		},
		"a failure is recorded, and not yet destroyed": {edits{attempts("0:provisioning"), named("x0"), installs(Failed)}, "fail attempt 0"},
		"what a failure left is destroyed":             {edits{attempts("0:failed@0s"), named("x0")}, "destroy x0"},
		"it is asked about until it is gone":           {edits{attempts("0:failed@0s"), named("x0"), destroys("x0", Running)}, "check again in 10s"},
		"then it is buried, and the back-off waited for": {
			edits{attempts("0:failed@0s"), named("x0"), destroys("x0", Succeeded)}, "record cleanup of attempt 0; check again in 1m0s",
		},
		"after the back-off comes the next attempt": {edits{attempts("0:failed@1m†"), named("x0")}, "record attempt 1 as c-1-4f435"},
		"the back-off doubles":                      {edits{attempts("0:failed@9h† 1:failed@1m†"), named("x1")}, "check again in 1m0s"},
		"of failed attempts three are kept":         {edits{attempts("4:failed@9h† 1:failed@9h† 3:failed@9h† 0:failed@9h† 2:failed@9h†"), named("x4")}, "delete attempt 0; delete attempt 1; record attempt 5 as c-5-ab5e4"},
		"at the limit there is no other attempt":    {edits{attempts("0:failed@9h†"), named("x0"), limited(1)}, "nothing"},
		"what the last attempt left is destroyed":   {edits{attempts("0:failed@9h"), named("x0"), limited(1)}, "destroy x0"},
		"a limit of 0 means no attempt":             {edits{limited(0)}, "nothing"},
		"a raised limit means another attempt":      {edits{attempts("0:failed@9h†"), named("x0"), limited(2)}, "record attempt 1 as c-1-4f435"},
		"what nobody knows of is destroyed first":   {edits{named("old")}, "destroy old"},
		"a refused preparation waits for a change":  {edits{prepares(Refused)}, "nothing"},
		"a preparation without room is repeated":    {edits{prepares(Waiting)}, "check again in 1m0s"},

		"an installed cluster needs nothing":                   {edits{installed, attempts("0:complete"), named("x0")}, "nothing"},
		"an adopted cluster needs nothing":                     {edits{installed, named("theirs")}, "nothing"},
		"an installed cluster whose result was lost is asked":  {edits{installed, attempts("0:provisioning"), named("x0")}, "install attempt 0"},
		"with the result its attempt is completed":             {edits{installed, attempts("0:provisioning"), named("x0"), installs(Succeeded)}, "last complete attempt 0"},
		"an installed cluster is never failed":                 {edits{installed, attempts("0:provisioning"), named("x0"), installs(Failed)}, "check again in 10m0s"},
		"one whose result is still running is asked again":     {edits{installed, attempts("0:provisioning"), named("x0"), installs(Running)}, "check again in 10s"},
		"one whose result waits is asked when it says":         {edits{installed, attempts("0:provisioning"), named("x0"), installs(Waiting)}, "check again in 1m0s"},
		"one whose result is refused is asked later":           {edits{installed, attempts("0:provisioning"), named("x0"), installs(Refused)}, "check again in 10m0s"},
		"one that lacks something is looked at again":          {edits{installed, attempts("0:provisioning"), named("x0"), lacking}, "check again in 10m0s"},
		"a completed attempt of no installed cluster is asked": {edits{attempts("0:complete"), named("x0")}, "install attempt 0"},
		"so is a paused fake one":                              {edits{func(s *Snapshot) { s.Cluster.Paused, s.Cluster.Fake = true, true }}, "nothing"},
		"a paused cluster is left alone":                       {edits{deleted, named("x0"), func(s *Snapshot) { s.Cluster.Paused = true }}, "nothing"},
		"another installer's cluster is left alone":            {edits{func(s *Snapshot) { s.Cluster.Foreign = true }}, "nothing"},

		"a deleted cluster is destroyed":                           {edits{deleted, named("x0")}, "create the ClusterDeprovision; destroy x0"},
		"it waits for its bundle":                                  {edits{deleted, named("x0"), awaiting(time.Minute)}, "check again in 1m0s"},
		"a preserved one waits, too":                               {edits{deleted, named("x0"), preserved, awaiting(time.Minute)}, "check again in 1m0s"},
		"but not for ever":                                         {edits{deleted, named("x0"), awaiting(0)}, "create the ClusterDeprovision; destroy x0"},
		"and not once it is being destroyed":                       {edits{deleted, opened, named("x0"), awaiting(time.Minute)}, "destroy x0"},
		"another installer does not wait":                          {edits{deleted, named("x0"), foreign, awaiting(time.Minute)}, "last remove the finalizer"},
		"a bundle that cannot be stored is reported":               {edits{deleted, named("x0"), noBundle}, "report that the hub stores no bundles of diagnostics; create the ClusterDeprovision; destroy x0"},
		"that is reported once":                                    {edits{deleted, opened, named("x0"), noBundle}, "destroy x0"},
		"so is every attempt that may have left something":         {edits{deleted, opened, named("x1"), attempts("0:failed@1h 1:provisioning 2:failed†")}, "destroy x0; destroy x1"},
		"an infraID that two attempts share is destroyed for both": {edits{deleted, opened, attempts("0:failed† 1:failed"), func(s *Snapshot) { s.Attempts[0].InfraID = "x1" }}, "destroy x1"},
		"it goes when all of it is gone": {
			edits{deleted, opened, named("x0"), destroys("x0", Succeeded)}, "complete the ClusterDeprovision; last remove the finalizer",
		},
		"it stays while some of it is not":      {edits{deleted, opened, named("x1"), attempts("0:failed"), destroys("x0", Succeeded), destroys("x1", Running)}, "check again in 10s"},
		"destroying without room is repeated":   {edits{deleted, opened, named("x0"), destroys("x0", Waiting)}, "check again in 1m0s"},
		"destroying that fails is recorded":     {edits{deleted, opened, named("x0"), destroys("x0", Failed)}, "report that destroying fails: Destroying x0 fails: m; check again in 1m0s"},
		"after a failure it is left for a time": {edits{deleted, opened, named("x0"), failing(10 * time.Second)}, "check again in 40s"},
		"and then tried again":                  {edits{deleted, opened, named("x0"), failing(50 * time.Second)}, "destroy x0"},
		"a closed record means it can go":       {edits{deleted, named("x0"), func(s *Snapshot) { s.Deprovision = Deprovision{Exists: true, Completed: true} }}, "last remove the finalizer"},
		"of what never began nothing is left":   {edits{deleted, powerless}, "last remove the finalizer"},
		"what nobody can destroy stays":         {edits{deleted, opened, named("x0"), powerless}, "nothing"},
		"a preserved cluster just goes":         {edits{deleted, named("x0"), func(s *Snapshot) { s.Cluster.Preserved = true }}, "last remove the finalizer"},
		"a protected cluster stays":             {edits{deleted, named("x0"), func(s *Snapshot) { s.Cluster.Protected, s.Cluster.Preserved = true, true }}, "nothing"},
		"what is not held is none of ours":      {edits{deleted, named("x0"), func(s *Snapshot) { s.Cluster.HasFinalizer = false }}, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshot(tt.in...)
			plan := Decide(s)
			if diff := cmp.Diff(tt.want, plan.String()); diff != "" {
				t.Error(diff)
			}
			rand.Shuffle(len(s.Attempts), func(i, j int) { s.Attempts[i], s.Attempts[j] = s.Attempts[j], s.Attempts[i] })
			if diff := cmp.Diff(plan.String(), Decide(s).String()); diff != "" {
				t.Errorf("the order of the attempts matters:\n%s", diff)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	for name, tt := range map[string]struct {
		in   edits
		want string
	}{
		"not begun":          {edits{lacking}, "Provisioned=False/Initializing RequirementsMet=False/ClusterImageSetNotFound"},
		"no image set named": {edits{func(s *Snapshot) { s.Needs.ImageSet = Source{} }}, "Provisioned=False/Initializing RequirementsMet=False/ClusterImageSetNotFound"},
		"no platform":        {edits{powerless, func(s *Snapshot) { s.Needs.Platform = "" }}, "Provisioned=False/Initializing RequirementsMet=False/UnsupportedPlatform"},
		"generated and bad":  {edits{func(s *Snapshot) { s.Needs.InstallConfig.Name = ""; s.Needs.Invalid = "x" }}, "Provisioned=False/Initializing RequirementsMet=False/InstallConfigValidationFailed"},
		"under way":          {edits{attempts("0:provisioning"), installs(Running)}, "Provisioned=False/Provisioning ProvisionStopped=False/ProvisionNotStopped ProvisionFailed=False/Provisioning RequirementsMet=True/AllRequirementsMet"},
		"held up":            {edits{attempts("0:provisioning"), installs(Waiting)}, "ProvisionStopped=False/ProvisionNotStopped ProvisionFailed=False/Provisioning RequirementsMet=True/AllRequirementsMet Provisioned=False/Provisioning"},
		"installed":          {edits{installed}, "Provisioned=True/Provisioned ProvisionStopped=False/ProvisionNotStopped ProvisionFailed=False/ProvisionSucceeded RequirementsMet=True/AllRequirementsMet"},
		"marked broken":      {edits{installed, marked}, "Provisioned=True/Provisioned ProvisionFailed=False/ProvisionSucceeded RequirementsMet=True/AllRequirementsMet"},
		"marked too early":   {edits{attempts("0:provisioning"), installs(Running), marked}, "Provisioned=False/Provisioning ProvisionStopped=False/ProvisionNotStopped ProvisionFailed=False/Provisioning RequirementsMet=True/AllRequirementsMet"},
		"backing off":        {edits{attempts("0:failed@0s†")}, "Provisioned=False/Provisioning ProvisionStopped=False/ProvisionNotStopped ProvisionFailed=True/Quota RequirementsMet=True/AllRequirementsMet"},
		"given up":           {edits{attempts("0:failed@0s†"), limited(1)}, "ProvisionFailed=True/Quota Provisioned=False/ProvisionStopped ProvisionStopped=True/InstallAttemptsLimitReached"},
		"the wreck remains":  {edits{attempts("0:failed@0s"), destroys("x0", Failed)}, "Provisioned=False/Provisioning ProvisionStopped=False/ProvisionNotStopped ProvisionFailed=True/Quota DeprovisionLaunchError=True/DestroyFailed"},
		"going":              {edits{deleted, named("x0"), destroys("x0", Running)}, "Provisioned=False/Deprovisioning DeprovisionLaunchError=False/Deprovisioning"},
		"not going":          {edits{deleted, named("x0"), destroys("x0", Refused)}, "DeprovisionLaunchError=True/DestroyFailed Provisioned=False/DeprovisionFailed"},
		"gone":               {edits{deleted, named("x0"), destroys("x0", Succeeded)}, "DeprovisionLaunchError=False/Deprovisioning Provisioned=False/Deprovisioned"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range Decide(snapshot(tt.in...)).Conditions {
				if consoleReads(c.Type) {
					continue // it has a test of its own
				}
				got = append(got, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAClusterThatLostItsPlatformSaysWhatToDo(t *testing.T) {
	s := snapshot(deleted, opened, named("x0"), powerless, func(s *Snapshot) { s.Needs.Platform = "" })
	want := "x0 is recorded, and spec.platform names no platform, so hotspare cannot destroy it: set spec.platform to its platform, " +
		"such as {local: {}}, or set spec.preserveOnDelete to delete the ClusterDeployment without destroying it."
	said := ""
	for _, c := range Decide(s).Conditions {
		if c.Type == hivev1.ClusterDeprovisionLaunchError {
			said = c.Message
		}
	}
	if said != want {
		t.Errorf("told %q", said)
	}
}

func consoleReads(typ string) bool {
	return typ == hivev1.ClusterAuthenticationFailure || typ == hivev1.ClusterInstallLaunchError
}

func TestWhereAPersonFindsWhyAnInstallMakesNoProgress(t *testing.T) {
	failedToPrepare := func(s *Snapshot) {
		s.Prepare = &Answer{Outcome: Waiting, Message: "m", After: time.Minute, PrepareFailed: true}
	}
	unauthorizedInstall := func(s *Snapshot) {
		s.Install = &Answer{Outcome: Refused, Message: "m", Unauthorized: true}
	}
	for name, tt := range map[string]struct {
		in           edits
		needs, fails string
		next         time.Duration
	}{
		"preparing fails, and is repeated":              {edits{failedToPrepare}, "True/AllRequirementsMet", "True/PrepareFailed", time.Minute},
		"preparing the next attempt fails":              {edits{attempts("0:failed@1h†"), failedToPrepare}, "True/AllRequirementsMet", "True/PrepareFailed", time.Minute},
		"preparing takes time":                          {edits{prepares(Waiting)}, "True/AllRequirementsMet", "", time.Minute},
		"the request is invalid before the attempt":     {edits{prepares(Refused)}, "False/InstallConfigValidationFailed", "", 0},
		"the request is invalid for the attempt":        {edits{attempts("0:provisioning"), installs(Refused)}, "False/InstallConfigValidationFailed", "False/Provisioning", deniedRetryInterval},
		"the credentials are refused":                   {edits{attempts("0:provisioning"), unauthorizedInstall}, "True/AllRequirementsMet", "False/Provisioning", deniedRetryInterval},
		"the attempt goes on":                           {edits{attempts("0:provisioning"), installs(Running)}, "True/AllRequirementsMet", "False/Provisioning", pollInterval},
		"the attempt is prepared after it could not be": {edits{attempts("0:provisioning")}, "True/AllRequirementsMet", "False/Provisioning", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := Decide(snapshot(tt.in...))
			got := map[string]string{}
			for _, c := range p.Conditions {
				got[c.Type] = fmt.Sprintf("%s/%s", c.Status, c.Reason)
			}
			if got[hivev1.ClusterRequirementsMet] != tt.needs || got[hivev1.ClusterProvisionFailed] != tt.fails || p.Next != tt.next {
				t.Errorf("RequirementsMet %s, ProvisionFailed %s, next %s, want %s, %s, %s",
					got[hivev1.ClusterRequirementsMet], got[hivev1.ClusterProvisionFailed], p.Next, tt.needs, tt.fails, tt.next)
			}
		})
	}
}

func TestConditionsThatTheConsoleOfACMReads(t *testing.T) {
	unauthorized := func(s *Snapshot) { s.Attempts[len(s.Attempts)-1].Reason = hivev1.ReasonInvalidCredentials }
	launch := func(a *Answer) { a.NotLaunched = true }
	login := func(a *Answer) { a.Unauthorized = true }
	prepared := func(change func(*Answer)) func(*Snapshot) {
		return func(s *Snapshot) { s.Prepare = &Answer{Outcome: Waiting, Message: "m"}; change(s.Prepare) }
	}
	asked := func(change func(*Answer)) func(*Snapshot) {
		return func(s *Snapshot) { s.Install = &Answer{Outcome: Waiting, Message: "m"}; change(s.Install) }
	}
	for name, tt := range map[string]struct {
		in                    edits
		authentication, start string
	}{
		"not begun":                            {edits{lacking}, "", "False/Initializing"},
		"the first pod cannot begin":           {edits{prepared(launch)}, "", "True/PodInPendingPhase"},
		"nor can a later one":                  {edits{attempts("0:provisioning"), asked(launch)}, "False/Provisioning", "True/PodInPendingPhase"},
		"it has begun":                         {edits{attempts("0:provisioning"), installs(Running)}, "False/Provisioning", "False/Provisioning"},
		"the platform does not know who asks":  {edits{prepared(login)}, "True/PlatformAuthError", "False/Initializing"},
		"so an attempt failed":                 {edits{attempts("0:failed@0s†"), unauthorized}, "True/PlatformAuthError", "False/Provisioning"},
		"it was the last one":                  {edits{attempts("0:failed@0s†"), unauthorized, limited(1)}, "True/PlatformAuthError", "False/Provisioning"},
		"another attempt goes on":              {edits{attempts("0:failed@1h† 1:provisioning"), installs(Running)}, "False/Provisioning", "False/Provisioning"},
		"an attempt failed for another reason": {edits{attempts("0:failed@0s†")}, "False/Provisioning", "False/Provisioning"},
		"installed":                            {edits{installed}, "False/ProvisionSucceeded", "False/ProvisionSucceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, c := range Decide(snapshot(tt.in...)).Conditions {
				got[c.Type] = fmt.Sprintf("%s/%s", c.Status, c.Reason)
			}
			if a, s := got[hivev1.ClusterAuthenticationFailure], got[hivev1.ClusterInstallLaunchError]; a != tt.authentication || s != tt.start {
				t.Errorf("AuthenticationFailure %s, InstallLaunchError %s, want %s, %s", a, s, tt.authentication, tt.start)
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	var got []string
	for n := range 8 {
		got = append(got, attemptBackoff(n).String())
	}
	want := "1m0s 2m0s 4m0s 8m0s 16m0s 32m0s 1h0m0s 1h0m0s"
	if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
		t.Error(diff)
	}
}

func TestAttemptName(t *testing.T) {
	one := AttemptName("c", "uid-1", 0)
	if one != AttemptName("c", "uid-1", 0) || one == AttemptName("c", "uid-2", 0) || !strings.HasPrefix(one, "c-0-") || len(one) != len("c-0-")+5 {
		t.Errorf("got %s", one)
	}
}

func TestLabels(t *testing.T) {
	for name, tt := range map[string]struct {
		platform hivev1.Platform
		now      map[string]string
		want     string
	}{
		"local has no region":          {hivev1.Platform{Local: &hivev1.LocalPlatform{}}, nil, "local unknown unmanaged"},
		"no platform is unknown":       {hivev1.Platform{}, nil, "unknown unknown unmanaged"},
		"the type is the user's":       {hivev1.Platform{AWS: raw(`{"region":"r"}`)}, map[string]string{hivev1.LabelType: "prod"}, "aws r prod"},
		"a region that is no label":    {hivev1.Platform{AWS: raw(`{"region":"a b"}`)}, nil, "aws unknown unmanaged"},
		"an agent is written as it is": {hivev1.Platform{AgentBareMetal: raw(`{}`)}, nil, "agent-baremetal unknown unmanaged"},
	} {
		t.Run(name, func(t *testing.T) {
			l := ClusterLabels(tt.platform, tt.now)
			got := l[hivev1.LabelPlatform] + " " + l[hivev1.LabelRegion] + " " + l[hivev1.LabelType]
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestVersionLabels(t *testing.T) {
	for version, want := range map[string]string{
		"4.18.20":             "4.18.20 4 4.18 4.18.20",
		"4.19.0-rc.2":         "4.19.0-rc.2 4 4.19 4.19.0",
		"1.36.3+build":        "1.36.3 1 1.36 1.36.3",
		"":                    "   ",
		"latest and greatest": "   ",
	} {
		l := VersionLabels(version)
		got := strings.Join([]string{l[hivev1.LabelVersion], l[hivev1.LabelVersionMajor], l[hivev1.LabelVersionMajorMinor], l[hivev1.LabelVersionMajorMinorPatch]}, " ")
		if got != want {
			t.Errorf("%q: got %q, want %q", version, got, want)
		}
	}
}
