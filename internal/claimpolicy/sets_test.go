package claimpolicy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// inSets puts the claims whose names have the form "s.0" into set s, which has that size.
func inSets(list []Claim, size int) []Claim {
	for i := range list {
		set, _, isMember := strings.Cut(list[i].Name, ".")
		if isMember {
			list[i].Set = Set{Name: set, Created: noon.Add(-time.Hour), Size: size}
		}
	}
	return list
}

func TestSetsAreAdmittedTogether(t *testing.T) {
	const two = "p: g:ci;;2"
	full := func(claim string) string {
		return "ClaimPolicy p admits at most 2 claims of all its subjects together at a time, and has admitted " + claim
	}
	const needs = ": ClaimSet s of alice gets all its 2 claims at once, and waits until enough of them are released"
	for name, tc := range map[string]struct {
		policy, claims, want string
	}{
		"all at once":                     {two, "s.0=alice(ci)@dev s.1=alice(ci)@dev", "admit s.0\nadmit s.1"},
		"none if one place is taken":      {two, "*x=bob(ci)@dev s.0=alice(ci)@dev s.1=alice(ci)@dev", "hold s.0: " + full("x of bob") + needs + "\nhold s.1: " + full("x of bob") + needs},
		"the place that is left is kept":  {two, "*x=bob(ci)@dev s.0=alice(ci)@dev s.1=alice(ci)@dev y=bob(ci)@dev", "hold s.0: " + full("x of bob") + needs + "\nhold s.1: " + full("x of bob") + needs + "\nhold y: " + full("x of bob; a place is reserved for s.0 of alice, s.1 of alice: this claim of bob waits until one of them is released")},
		"the rest of one is first":        {"p: g:ci;;2;;100", "y^100=bob(ci)@dev +s.0=alice(ci)@dev s.1=alice(ci)@dev", "admit s.1\nhold y: " + full("s.0 of alice, s.1 of alice: this claim of bob waits until one of them is released")},
		"or all of it waits":              {two, "*x=bob(ci)@dev +s.0=alice(ci)@dev s.1=alice(ci)@dev", "hold s.0: " + full("s.0 of alice, x of bob") + needs + "\nhold s.1: " + full("s.0 of alice, x of bob") + needs},
		"one that has a cluster keeps it": {two, "*x=bob(ci)@dev *s.0=alice(ci)@dev s.1=alice(ci)@dev", "hold s.1: " + full("s.0 of alice, x of bob") + needs},
		"not before all exist":            {two, "s.0=alice(ci)@dev x=bob(ci)@dev", "hold s.0: ClaimSet s does not have all its claims yet: they are admitted together\nadmit x"},
		"one that is created keeps places": {
			two, "s.0=alice(ci)@dev ~s.1=alice(ci)@dev x=bob(ci)@dev",
			"hold s.0: ClaimSet s does not have all its claims yet: they are admitted together\n" +
				"hold x: ClaimPolicy p admits at most 2 claims of all its subjects together at a time; a place is reserved for s.0 of alice, s.1 of alice: this claim of bob waits until one of them is released",
		},
		"also without any claim": {
			two, "~s.0=alice(ci)@dev ~s.1=alice(ci)@dev x=bob(ci)@dev",
			"hold x: ClaimPolicy p admits at most 2 claims of all its subjects together at a time; a place is reserved for s.0 of alice, s.1 of alice: this claim of bob waits until one of them is released",
		},
		"and its place in line":                  {two, "*x=bob(ci)@dev ~s.0=alice(ci)@dev ~s.1=alice(ci)@dev y=bob(ci)@dev", "hold y: " + full("x of bob; a place is reserved for s.0 of alice, s.1 of alice: this claim of bob waits until one of them is released")},
		"one that moves keeps places":            {two, "+s.0=alice(ci)@dev ~s.1=alice(ci)@prod x=bob(ci)@dev", "hold x: " + full("s.0 of alice; a place is reserved for s.1 of alice: this claim of bob waits until one of them is released")},
		"one for which a limit is too low, none": {"p: g:ci;;1", "~s.0=alice(ci)@dev ~s.1=alice(ci)@dev x=bob(ci)@dev", "admit x"},
		"one without a permission, none":         {two, "~s.0=carol@dev ~s.1=carol@dev x=bob(ci)@dev", "admit x"},
		"a limit that is too low, for ever":      {"p: g:ci;;1", "s.0=alice(ci)@dev s.1=alice(ci)@dev x=bob(ci)@dev", tooLow + "\n" + strings.Replace(tooLow, "s.0", "s.1", 1) + "\nadmit x"},
		"a user's limit that is too low":         {"p: g:ci;;;1", "s.0=alice(ci)@dev s.1=alice(ci)@dev", strings.ReplaceAll(tooLow+"\n"+strings.Replace(tooLow, "s.0", "s.1", 1), "all its subjects together", "alice")},
	} {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{Policies: []Policy{policy(tc.policy)}, Claims: inSets(claims(tc.claims), 2), Pools: []string{"dev", "prod"}}
			if got := Decide(s).String(); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

var tooLow = fmt.Sprintf("hold s.0: ClaimPolicy p admits at most 1 claim at a time of %s, and ClaimSet s needs 2 at once: ask somebody who may write ClaimPolicies here, or create a smaller set", "all its subjects together")

func TestClaimsThatDoNotExistAreNotCountedAsWaiting(t *testing.T) {
	list := inSets(claims("*x=bob(ci)@dev s.0=alice(ci)@dev ~s.1=alice(ci)@dev"), 2)
	got := Decide(Snapshot{Policies: []Policy{policy("p: g:ci;;2")}, Claims: list, Pools: []string{"dev"}}).Counts["p"]
	if want := (Counts{Admitted: 1, Waiting: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestWithoutPoliciesSetsHaveNoCondition(t *testing.T) {
	if got := Decide(Snapshot{Claims: inSets(claims("s.0=@dev +s.1=@dev"), 3)}).String(); got != "remove condition Admitted of s.1" {
		t.Error(got)
	}
}

func TestAnOrphanedClaimIsNotAdmitted(t *testing.T) {
	list := claims("x=alice@dev y=alice@dev")
	list[0].Orphaned = true
	list[1].Set = Set{Name: "y", Size: 1, Deleting: true}
	got := Decide(Snapshot{Policies: []Policy{policy("p: u:alice")}, Claims: list, Pools: []string{"dev"}}).String()
	if !strings.Contains(got, "hold x: The claim names as its owner a ClaimSet that does not exist") || !strings.Contains(got, "hold y: ClaimSet y is being deleted") {
		t.Error(got)
	}
}

// TestCanAdmitSetAgreesWithTheDecider compares CanAdmitSet with what is decided about a set that is alone.
func TestCanAdmitSetAgreesWithTheDecider(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	seen := map[bool]int{}
	for range 2000 {
		var policies []Policy
		for i := range 1 + random.IntN(3) {
			policies = append(policies, policy(fmt.Sprintf("p%d: %s;%s;%s;%s", i, pick("u:alice", "u:bob", "g:ci", "g:dev"), pick("", "dev", "prod", "dev prod"),
				pick("", "", "0", "1", "2", "3"), pick("", "", "1", "2"))))
		}
		size := 1 + random.IntN(3)
		var words []string
		who := pick("alice", "bob", "alice(ci)", "carol(ci,dev)", "carol")
		for i := range size {
			words = append(words, fmt.Sprintf("s.%d=%s@dev", i, who))
		}
		list := inSets(claims(strings.Join(words, " ")), size)
		p := Decide(Snapshot{Policies: policies, Claims: list, Pools: []string{"dev"}})
		got := CanAdmitSet(policies, list[0].Creator, "dev", size)
		if got != p.Admits() {
			t.Fatalf("got %t for %d claims of %s and %+v, but: %s", got, size, who, policies, p)
		}
		seen[got]++
	}
	if seen[true] < 100 || seen[false] < 100 {
		t.Errorf("seen too little: %v", seen)
	}
}

func TestTheChoiceOfAPoolDoesNotDependOnWhatIsUnknown(t *testing.T) {
	mine := []Policy{policy("p: u:bob")}
	broken := []Policy{policy("p: u:bob"), policy("q?: u:bob")}
	alice := Creator{User: "alice"}
	for name, can := range map[string]bool{
		"without policies":       CanAdmitSet(nil, alice, "dev", 2),
		"an unknown creator":     CanAdmitSet(mine, Creator{}, "dev", 2),
		"an unreadable policy":   CanAdmitSet(broken, alice, "dev", 2),
		"not for another's pool": !CanAdmitSet(mine, alice, "dev", 2),
	} {
		if !can {
			t.Error(name)
		}
	}
}

func TestMissingClaims(t *testing.T) {
	newSet := func(change ...func(*v1alpha1.ClaimSet)) *v1alpha1.ClaimSet {
		set := &v1alpha1.ClaimSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: v1alpha1.ClaimSetSpec{Size: 3}, Status: v1alpha1.ClaimSetStatus{ClusterPoolName: "dev"}}
		for _, c := range change {
			c(set)
		}
		return set
	}
	now := metav1.NewTime(noon)
	for name, tc := range map[string]struct {
		set    *v1alpha1.ClaimSet
		claims string
		want   int
	}{
		"all":                             {newSet(), "", 3},
		"those that it does not have":     {newSet(), "x=@dev +y=@dev", 1},
		"none while one is being deleted": {newSet(), "+x=@dev -y=@dev -z=@dev", 0},
		"none once it is complete":        {newSet(), "x=@dev y=@dev z=@dev", 0},
		"none once one has a cluster":     {newSet(), "*x=@dev y=@dev", 0},
		"none while that is released":     {newSet(), "-*x=@dev y=@dev", 0},
		"none of a set that was served":   {newSet(func(s *v1alpha1.ClaimSet) { s.Status.ServedTime = &now }), "", 0},
		"none of one that is deleted":     {newSet(func(s *v1alpha1.ClaimSet) { s.DeletionTimestamp = &now }), "", 0},
		"none of one without a pool":      {newSet(func(s *v1alpha1.ClaimSet) { s.Status.ClusterPoolName = "" }), "", 0},
		"a new one has the pool of its claims": {
			newSet(func(s *v1alpha1.ClaimSet) { s.Status.ClusterPoolName = "" }), "x=@dev", 2,
		},
		"none of one that waits for a person": {newSet(func(s *v1alpha1.ClaimSet) {
			s.Status.Conditions = []metav1.Condition{{Type: "Stalled", Status: metav1.ConditionTrue}}
		}), "", 0},
	} {
		got := MissingClaims(tc.set, claims(tc.claims))
		if len(got) != tc.want {
			t.Errorf("%s: %d, want %d", name, len(got), tc.want)
		}
		for _, c := range got {
			if !c.Missing || c.Pool != "dev" || c.Set.Size != 3 {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
}
