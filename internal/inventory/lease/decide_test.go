package lease

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

var slot = types.NamespacedName{Namespace: "pools", Name: "slot"}

// parseSnapshot returns the snapshot of the customization slot, "[state …] [cluster:state,…] …", in
// which the word free or leased to a cluster begins: "x: held", "free: deleting".
//
// A cluster names slot, exists, is bound and standing, unless it says otherwise.
func parseSnapshot(text string) Snapshot {
	lease, rest, _ := strings.Cut(text, ":")
	f := Snapshot{Key: slot, Exists: lease != "none", Available: "True", StatusCurrent: true}
	if lease != "free" && lease != "none" {
		f.Leased, f.Available, f.ApplyReason = true, metav1.ConditionFalse, hivev1.ReasonInstallationPending
		f.Holder = types.NamespacedName{Namespace: lease, Name: lease}
		f.Pool = types.NamespacedName{Namespace: "pools", Name: "p"}
	}
	for _, word := range strings.Fields(rest) {
		name, states, isCluster := strings.Cut(word, "=")
		switch {
		case isCluster:
			f.Clusters = append(f.Clusters, parseCluster(name, strings.Split(states, ",")))
		case strings.HasPrefix(word, "says"):
			f.Available = metav1.ConditionStatus(strings.TrimPrefix(word, "says"))
		case strings.HasPrefix(word, "applied"):
			f.ApplyReason = strings.TrimPrefix(word, "applied")
		default:
			f.HasFinalizer = f.HasFinalizer || word == "held"
			f.Deleting = f.Deleting || word == "deleting"
			f.Unreadable = f.Unreadable || word == "unreadable"
			f.StatusCurrent = f.StatusCurrent && word != "unreported"
			f.HolderRecorded = f.HolderRecorded || word == "recorded"
			f.PoolUnreadable = f.PoolUnreadable || word == "obscure"
		}
	}
	return f
}

func parseCluster(name string, states []string) Cluster {
	c := Cluster{
		Key:           types.NamespacedName{Namespace: name, Name: name},
		Created:       time.Unix(int64(name[0]), 0),
		Customization: slot, HasLeaseFinalizer: true, HasDeprovisionFinalizer: true,
	}
	for _, s := range states {
		switch s {
		case "deleting":
			c.Deleting = true
		case "over":
			c.Deleting, c.HasDeprovisionFinalizer = true, false
		case "new":
			c.HasDeprovisionFinalizer = false
		case "unbound":
			c.HasLeaseFinalizer = false
		case "elsewhere":
			c.Customization.Name = "another"
		case "nowhere":
			c.Customization.Name = ""
		case "installed":
			c.Installed = true
		case "stopped":
			c.Stopped = true
		case "unreadable":
			c.Unreadable = true
		}
	}
	return c
}

func formatPlan(p Plan) string {
	var out []string
	for _, s := range p.Steps {
		out = append(out, s.String())
	}
	return strings.Join(out, "; ")
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"nobody uses it, and nothing is to be done":                 {"free:", ""},
		"a new one says that it is free":                            {"free: says", "report free"},
		"one that is deleted need not say it":                       {"free: says deleting", ""},
		"what tools that wait go by is behind":                      {"free: unreported", "report status"},
		"it goes along with another report":                         {"free: unreported says", "report free"},
		"also in use, and of one that cannot be read":               {"x: held unreadable unreported x=live", "report status"},
		"of one that is deleted nothing is reported":                {"free: held deleting unreported", "remove finalizer"},
		"our finalizer stays while it is free":                      {"free: held", ""},
		"a lease that is kept":                                      {"x: held x=live", ""},
		"a new cluster, not marked yet, keeps it":                   {"x: held x=new", ""},
		"in use it is held":                                         {"x: x=live", "add finalizer"},
		"a finalizer cannot be added any more":                      {"x: deleting x=live", ""},
		"deleted in use, it stays held":                             {"x: held deleting x=live", ""},
		"deleted and free, it goes":                                 {"free: held deleting", "remove finalizer"},
		"deleted, and not held by us":                               {"free: deleting", ""},
		"deleted, with a cluster to repair first":                   {"free: held deleting x=live", "acquire lease for cluster x"},
		"deleted, with a cluster that cannot be read":               {"free: held deleting x=unreadable", ""},
		"deleted, with a cluster that is gone":                      {"free: held deleting x=over", "remove finalizer; remove finalizer of cluster x"},
		"an installed cluster":                                      {"x: held x=installed", "report cluster: Succeeded"},
		"an installed cluster, told before":                         {"x: held appliedSucceeded x=installed", ""},
		"an install that was given up":                              {"x: held x=stopped", "report cluster: BrokenByCloud"},
		"a given up install that goes on after all":                 {"x: held appliedBrokenByCloud x=live", "report cluster: InstallationPending"},
		"a cluster that worked before an install is remembered":     {"x: held appliedSucceeded x=deleting", ""},
		"in use it does not say that it is available":               {"x: held saysTrue x=live", "report cluster"},
		"in use, going, and it says so":                             {"x: held applied saysTrue x=deleting", "report cluster"},
		"its cluster is being destroyed":                            {"x: held x=deleting", ""},
		"its cluster is destroyed":                                  {"x: held x=over", "release lease: cluster x is destroyed; remove finalizer of cluster x"},
		"its cluster was destroyed, and is not bound":               {"x: held x=over,unbound", "release lease: cluster x is destroyed"},
		"its cluster does not exist":                                {"x: held", "release lease: cluster x does not exist"},
		"its cluster is about to be made":                           {"x: held recorded", ""},
		"its cluster may be about to be made":                       {"x: held obscure", ""},
		"its cluster is gone before its pool has seen it":           {"x: held recorded x=over", ""},
		"its cluster no longer exists, and its pool cannot be read": {"x: held obscure x=over", "release lease: cluster x is destroyed; remove finalizer of cluster x"},
		"its cluster names another":                                 {"x: held x=elsewhere", "release lease: cluster x does not name this customization"},
		"its cluster names none":                                    {"x: held x=nowhere", "release lease: cluster x does not name this customization"},
		"its cluster cannot be read":                                {"x: held x=unreadable", ""},
		"its cluster cannot be read and seems gone":                 {"x: held x=over,unreadable", ""},
		"its cluster cannot be read and seems to name another":      {"x: held x=elsewhere,unreadable", ""},
		"another cluster is gone (B7)":                              {"x: held x=live y=over", "remove finalizer of cluster y"},
		"another cluster lives, and waits to be displaced":          {"x: held x=live y=live", ""},
		"nobody has it, and a cluster should":                       {"free: x=live", "add finalizer; acquire lease for cluster x"},
		"nobody has it, and it is held already":                     {"free: held x=live", "acquire lease for cluster x"},
		"the oldest takes it":                                       {"free: held y=live x=live", "acquire lease for cluster x"},
		"one that lives takes it before one that goes":              {"free: held a=deleting x=live", "acquire lease for cluster x"},
		"one that goes still uses it":                               {"free: held x=deleting", "acquire lease for cluster x"},
		"one that is gone does not take it":                         {"free: held x=over,unbound", ""},
		"one that cannot be read does not take it":                  {"free: held x=unreadable", ""},
		"nobody has it, though it says so":                          {"free: held saysFalse", "release lease: it names no cluster"},
		"nobody has it, though it says so, and it is deleted":       {"free: held deleting saysFalse", "release lease: it names no cluster; remove finalizer"},
		"it cannot be read: it is left alone":                       {"x: unreadable", ""},
		"it cannot be read: clusters that are gone can go":          {"x: unreadable x=over y=live", "remove finalizer of cluster x"},
		"it does not exist: clusters that are gone can go":          {"none: x=over y=deleting z=live", "remove finalizer of cluster x"},
		"it does not exist: what cannot be read is left alone":      {"none: x=over,unreadable", ""},
		"a cluster that names another is the other's to let go":     {"free: x=over,elsewhere", ""},
		"who was displaced and goes does not end another's lease":   {"y: held x=over y=live", "remove finalizer of cluster x"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := formatPlan(Decide(parseSnapshot(tc.in))); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}

// What must hold of every plan, whatever is seen.
func TestEveryPlan(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	words := []string{"held", "deleting", "recorded", "obscure", "unreadable", "saysTrue", "says", "saysFalse", "unreported"}
	states := []string{"live", "new", "deleting", "over", "elsewhere", "nowhere", "unreadable", "installed", "stopped", "unbound"}
	for range 20000 {
		text := []string{"x", "free", "none"}[r.IntN(3)] + ":"
		for _, w := range words {
			if r.IntN(4) == 0 {
				text += " " + w
			}
		}
		for _, name := range []string{"x", "y", "z"} {
			if r.IntN(2) == 0 {
				text += " " + name + "=" + states[r.IntN(len(states))] + "," + states[r.IntN(len(states))]
			}
		}
		f := parseSnapshot(text)
		if why := wrong(f, Decide(f)); why != "" {
			t.Fatalf("seed %d: %s: %q: %s", seed, text, formatPlan(Decide(f)), why)
		}
		back := f
		back.Clusters = nil
		for i := range f.Clusters {
			back.Clusters = append(back.Clusters, f.Clusters[len(f.Clusters)-1-i])
		}
		if a, b := sortedPlan(Decide(f)), sortedPlan(Decide(back)); a != b {
			t.Fatalf("seed %d: %s: the order of clusters makes a difference: %q, %q", seed, text, a, b)
		}
	}
}

func sortedPlan(p Plan) string {
	steps := strings.Split(formatPlan(p), "; ")
	slices.Sort(steps)
	return strings.Join(steps, "; ")
}

func wrong(s Snapshot, p Plan) string {
	statuses := 0
	for _, step := range p.Steps {
		c := s.FindCluster(s.Holder)
		switch step.Verb {
		case ReleaseLease:
			statuses++
			if s.Leased && c != nil && (c.Unreadable || c.Customization == slot && !c.IsDestroyed()) {
				return "it ends the lease of a cluster that needs it"
			}
		case AcquireLease:
			statuses++
			if s.Leased || step.Cluster.IsDestroyed() || step.Cluster.Customization != slot {
				return "it takes what it should not"
			}
		case ReportHolder, ReportStatus, ReportFree:
			statuses++
		case RemoveClusterFinalizer:
			if !step.Cluster.IsDestroyed() || step.Cluster.Unreadable {
				return "it lets a cluster go that is there"
			}
		case RemoveFinalizer:
			if s.Leased {
				return "it drops what is in use"
			}
		case AddFinalizer:
			if s.Deleting {
				return "it adds a finalizer to what is being deleted"
			}
		}
		if (s.Unreadable || !s.Exists) && step.Verb != RemoveClusterFinalizer && (step.Verb != ReportStatus || !s.Exists) {
			return "it writes what it could not read"
		}
	}
	if statuses > 1 {
		return "it writes the status more than once"
	}
	return ""
}
