package customization

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

var slot = types.NamespacedName{Namespace: "pools", Name: "slot"}

// written reads facts of the customization slot, "[state …] [cluster:state,…] …", in
// which the word free or leased to a cluster begins: "x: held", "free: deleting".
//
// A cluster names slot, exists, is bound and standing, unless it says otherwise.
func written(text string) snapshot {
	lease, rest, _ := strings.Cut(text, ":")
	f := snapshot{exists: lease != "none", available: "True", statusCurrent: true}
	if lease != "free" && lease != "none" {
		f.leased, f.available, f.applyReason = true, availableFalse, hivev1.ReasonInstallationPending
		f.holder = types.NamespacedName{Namespace: lease, Name: lease}
		f.pool = types.NamespacedName{Namespace: "pools", Name: "p"}
	}
	for _, word := range strings.Fields(rest) {
		name, states, isCluster := strings.Cut(word, "=")
		switch {
		case isCluster:
			f.clusters = append(f.clusters, writtenCluster(name, strings.Split(states, ",")))
		case strings.HasPrefix(word, "says"):
			f.available = strings.TrimPrefix(word, "says")
		case strings.HasPrefix(word, "applied"):
			f.applyReason = strings.TrimPrefix(word, "applied")
		default:
			f.hasFinalizer = f.hasFinalizer || word == "held"
			f.deleting = f.deleting || word == "deleting"
			f.unreadable = f.unreadable || word == "unreadable"
			f.statusCurrent = f.statusCurrent && word != "unreported"
			f.holderRecorded = f.holderRecorded || word == "recorded"
			f.poolUnreadable = f.poolUnreadable || word == "obscure"
		}
	}
	return f
}

func writtenCluster(name string, states []string) cluster {
	c := cluster{
		key:           types.NamespacedName{Namespace: name, Name: name},
		created:       time.Unix(int64(name[0]), 0),
		customization: slot, hasLeaseFinalizer: true, hasDeprovisionFinalizer: true,
	}
	for _, s := range states {
		switch s {
		case "deleting":
			c.deleting = true
		case "over":
			c.deleting, c.hasDeprovisionFinalizer = true, false
		case "new":
			c.hasDeprovisionFinalizer = false
		case "unbound":
			c.hasLeaseFinalizer = false
		case "elsewhere":
			c.customization.Name = "another"
		case "nowhere":
			c.customization.Name = ""
		case "installed":
			c.installed = true
		case "stopped":
			c.stopped = true
		case "unreadable":
			c.unreadable = true
		}
	}
	return c
}

func spoken(plan []step) string {
	var out []string
	for _, s := range plan {
		out = append(out, s.String())
	}
	return strings.Join(out, "; ")
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"nobody uses it, and nothing is to be done":               {"free:", ""},
		"a new one says that it is free":                          {"free: says", "free"},
		"one that is deleted need not say it":                     {"free: says deleting", ""},
		"what tools that wait go by is behind":                    {"free: unreported", "report"},
		"it goes along with another report":                       {"free: unreported says", "free"},
		"also in use, and of one that cannot be read":             {"x: held unreadable unreported x=live", "report"},
		"of one that is deleted nothing is reported":              {"free: held deleting unreported", "drop"},
		"our finalizer stays while it is free":                    {"free: held", ""},
		"a lease that is kept":                                    {"x: held x=live", ""},
		"a new cluster, not marked yet, keeps it":                 {"x: held x=new", ""},
		"in use it is held":                                       {"x: x=live", "hold"},
		"a finalizer cannot be added any more":                    {"x: deleting x=live", ""},
		"deleted in use, it stays held":                           {"x: held deleting x=live", ""},
		"deleted and free, it goes":                               {"free: held deleting", "drop"},
		"deleted, and not held by us":                             {"free: deleting", ""},
		"deleted, with a cluster to repair first":                 {"free: held deleting x=live", "take x"},
		"deleted, with a cluster that cannot be read":             {"free: held deleting x=unreadable", ""},
		"deleted, with a cluster that is gone":                    {"free: held deleting x=over", "drop; let go x"},
		"an installed cluster":                                    {"x: held x=installed", "tell: Succeeded"},
		"an installed cluster, told before":                       {"x: held appliedSucceeded x=installed", ""},
		"an install that was given up":                            {"x: held x=stopped", "tell: BrokenByCloud"},
		"a given up install that goes on after all":               {"x: held appliedBrokenByCloud x=live", "tell: InstallationPending"},
		"a cluster that worked before an install is remembered":   {"x: held appliedSucceeded x=deleting", ""},
		"in use it does not say that it is available":             {"x: held saysTrue x=live", "tell: InstallationPending"},
		"in use, going, and it says so":                           {"x: held applied saysTrue x=deleting", "tell: "},
		"its cluster is being destroyed":                          {"x: held x=deleting", ""},
		"its cluster is destroyed":                                {"x: held x=over", "release: cluster x is gone; let go x"},
		"its cluster was destroyed, and is not bound":             {"x: held x=over,unbound", "release: cluster x is gone"},
		"its cluster does not exist":                              {"x: held", "release: cluster x does not exist"},
		"its cluster is about to be made":                         {"x: held recorded", ""},
		"its cluster may be about to be made":                     {"x: held obscure", ""},
		"its cluster is gone before its pool has seen it":         {"x: held recorded x=over", ""},
		"its cluster is gone, and its pool cannot be read":        {"x: held obscure x=over", "release: cluster x is gone; let go x"},
		"its cluster names another":                               {"x: held x=elsewhere", "release: cluster x does not name this customization"},
		"its cluster names none":                                  {"x: held x=nowhere", "release: cluster x does not name this customization"},
		"its cluster cannot be read":                              {"x: held x=unreadable", ""},
		"its cluster cannot be read and seems gone":               {"x: held x=over,unreadable", ""},
		"its cluster cannot be read and seems to name another":    {"x: held x=elsewhere,unreadable", ""},
		"another cluster is gone (B7)":                            {"x: held x=live y=over", "let go y"},
		"another cluster lives, and waits to be displaced":        {"x: held x=live y=live", ""},
		"nobody has it, and a cluster should":                     {"free: x=live", "hold; take x"},
		"nobody has it, and it is held already":                   {"free: held x=live", "take x"},
		"the oldest takes it":                                     {"free: held y=live x=live", "take x"},
		"one that lives takes it before one that goes":            {"free: held a=deleting x=live", "take x"},
		"one that goes still uses it":                             {"free: held x=deleting", "take x"},
		"one that is gone does not take it":                       {"free: held x=over,unbound", ""},
		"one that cannot be read does not take it":                {"free: held x=unreadable", ""},
		"nobody has it, though it says so":                        {"free: held saysFalse", "release: it names no cluster"},
		"nobody has it, though it says so, and it is deleted":     {"free: held deleting saysFalse", "release: it names no cluster; drop"},
		"it cannot be read: it is left alone":                     {"x: unreadable", ""},
		"it cannot be read: clusters that are gone can go":        {"x: unreadable x=over y=live", "let go x"},
		"it does not exist: clusters that are gone can go":        {"none: x=over y=deleting z=live", "let go x"},
		"it does not exist: what cannot be read is left alone":    {"none: x=over,unreadable", ""},
		"a cluster that names another is the other's to let go":   {"free: x=over,elsewhere", ""},
		"who was displaced and goes does not end another's lease": {"y: held x=over y=live", "let go x"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := spoken(decide(slot, written(tc.in))); got != tc.want {
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
		f := written(text)
		if why := wrong(f, decide(slot, f)); why != "" {
			t.Fatalf("seed %d: %s: %q: %s", seed, text, spoken(decide(slot, f)), why)
		}
		back := f
		back.clusters = nil
		for i := range f.clusters {
			back.clusters = append(back.clusters, f.clusters[len(f.clusters)-1-i])
		}
		if a, b := sortedPlan(decide(slot, f)), sortedPlan(decide(slot, back)); a != b {
			t.Fatalf("seed %d: %s: the order of clusters makes a difference: %q, %q", seed, text, a, b)
		}
	}
}

func sortedPlan(plan []step) string {
	steps := strings.Split(spoken(plan), "; ")
	slices.Sort(steps)
	return strings.Join(steps, "; ")
}

func wrong(f snapshot, plan []step) string {
	statuses := 0
	for _, s := range plan {
		c := f.findCluster(f.holder)
		switch s.verb {
		case releaseLease:
			statuses++
			if f.leased && c != nil && (c.unreadable || c.customization == slot && !c.isDestroyed()) {
				return "it ends the lease of a cluster that needs it"
			}
		case acquireLease:
			statuses++
			if f.leased || s.cluster.isDestroyed() || s.cluster.customization != slot {
				return "it takes what it should not"
			}
		case reportHolder, reportStatus, reportFree:
			statuses++
		case removeClusterFinalizer:
			if !s.cluster.isDestroyed() || s.cluster.unreadable {
				return "it lets a cluster go that is there"
			}
		case removeFinalizer:
			if f.leased {
				return "it drops what is in use"
			}
		case addFinalizer:
			if f.deleting {
				return "it adds a finalizer to what is being deleted"
			}
		}
		if (f.unreadable || !f.exists) && s.verb != removeClusterFinalizer && (s.verb != reportStatus || !f.exists) {
			return "it writes what it could not read"
		}
	}
	if statuses > 1 {
		return "it writes the status more than once"
	}
	return ""
}
