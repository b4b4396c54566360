package claimpolicy

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/condition"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// policy is written as "name: subjects; pools; max; max per user; max priority", where subjects begin with u:, g: or s:. A "?"
// after the name marks one that cannot be read.
func policy(text string) Policy {
	name, rest, _ := strings.Cut(text, ": ")
	part := strings.Split(rest+";;;;", ";")
	p := Policy{Namespace: "ci", Name: strings.TrimSuffix(name, "?")}
	if strings.HasSuffix(name, "?") {
		p.Unreadable = "why"
	}
	for _, s := range strings.Fields(part[0]) {
		kind := map[string]string{"u": "User", "g": "Group", "s": "ServiceAccount"}[s[:1]]
		subject := v1alpha1.ClaimSubject{Kind: kind, Name: s[2:]}
		if namespace, account, found := strings.Cut(s[2:], "/"); found && kind == "ServiceAccount" {
			subject.Namespace, subject.Name = namespace, account
		}
		p.Spec.Subjects = append(p.Spec.Subjects, subject)
	}
	p.Spec.Pools = strings.Fields(part[1])
	read := func(text string) *int32 {
		var n int32
		if _, err := fmt.Sscan(text, &n); err != nil {
			return nil
		}
		return &n
	}
	p.Spec.MaxClaims, p.Spec.MaxClaimsPerUser, p.Spec.MaxPriority = read(part[2]), read(part[3]), read(part[4])
	return p
}

// claims are written as "name=user(group,group)@pool", with a "+" for one that is admitted, a "*" for one that has
// a cluster, a "?" for one that cannot be read and a "-" for one that is being deleted; oldest first, a second apart. "name^5"
// has priority 5.
func claims(text string) []Claim {
	var out []Claim
	for i, word := range strings.Fields(text) {
		marks := strings.TrimLeft(word, "+*?-~")
		c := Claim{Created: noon.Add(time.Duration(i) * time.Second)}
		for _, m := range strings.TrimSuffix(word, marks) {
			switch m {
			case '+':
				c.Admitted = condition.True("Admitted", "The claim is admitted")
			case '*':
				c.HasCluster = true
				c.Admitted = condition.True("Admitted", "The claim is admitted")
			case '?':
				c.Unreadable = true
			case '-':
				c.Deleting = true
			case '~':
				c.Missing = true
			}
		}
		c.Name, marks, _ = strings.Cut(marks, "=")
		var priority string
		c.Name, priority, _ = strings.Cut(c.Name, "^")
		c.Priority, _ = strconv.Atoi(priority) // 0 if there is none
		who, pool, _ := strings.Cut(marks, "@")
		user, groups, _ := strings.Cut(strings.TrimSuffix(who, ")"), "(")
		c.Pool, c.Creator = pool, Creator{User: user}
		if groups != "" {
			c.Creator.Groups = strings.Split(groups, ",")
		}
		out = append(out, c)
	}
	return out
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		policies []string
		claims   string
		want     string
	}{
		"a namespace without a policy has no limits":      {nil, "x=alice@dev", ""},
		"conditions go with the last policy":              {nil, "+x=alice@dev", "remove condition Admitted of x"},
		"a user is permitted":                             {[]string{"p: u:alice"}, "x=alice@dev", "admit x"},
		"a group is permitted":                            {[]string{"p: g:ci"}, "x=alice(dev,ci)@dev", "admit x"},
		"a service account of the policy's namespace":     {[]string{"p: s:bot"}, "x=system:serviceaccount:ci:bot@dev y=system:serviceaccount:other:bot@dev", "admit x\nhold y: No ClaimPolicy in this namespace permits system:serviceaccount:other:bot to claim from pool dev: ask somebody who may write ClaimPolicies here"},
		"a service account of another namespace":          {[]string{"p: s:other/bot"}, "x=system:serviceaccount:other:bot@dev", "admit x"},
		"a group is no user":                              {[]string{"p: g:alice"}, "x=alice(ci)@dev", "hold x: No ClaimPolicy in this namespace permits alice to claim from pool dev: ask somebody who may write ClaimPolicies here"},
		"another pool":                                    {[]string{"p: u:alice;prod test"}, "x=alice@dev", "hold x: No ClaimPolicy in this namespace permits alice to claim from pool dev: ask somebody who may write ClaimPolicies here"},
		"one policy that permits is enough":               {[]string{"p: u:bob", "q: u:alice;dev"}, "x=alice@dev", "admit x"},
		"a policy that cannot be read admits nobody":      {[]string{"p: g:ci", "q?: g:ci"}, "+x=alice(ci)@dev y=bob(ci)@dev", "hold y: ClaimPolicy q cannot be read, and may limit this claim: why: correct it"},
		"an unknown creator":                              {[]string{"p: u:alice"}, "x=@dev", "hold x: The namespace has a ClaimPolicy, and it is not known who created this claim: it has no annotation hotspare.io/creator, which the hub sets: delete the claim and create it again"},
		"an unknown creator keeps a cluster":              {[]string{"p: u:alice"}, "*x=@dev", ""},
		"an admission that is no longer permitted":        {[]string{"p: u:bob"}, "+x=alice@dev", "hold x: No ClaimPolicy in this namespace permits alice to claim from pool dev: ask somebody who may write ClaimPolicies here"},
		"a user at the limit":                             {[]string{"p: g:ci;;;1"}, "*x=alice(ci)@dev y=alice(ci)@dev z=bob(ci)@dev", "hold y: ClaimPolicy p admits at most 1 claim of alice at a time, and has admitted x: this claim of alice waits until one of them is released\nadmit z"},
		"a policy at its limit":                           {[]string{"p: g:ci;;2"}, "*x=alice(ci)@dev y=bob(ci)@dev z=carol(ci)@dev", "admit y\nhold z: ClaimPolicy p admits at most 2 claims of all its subjects together at a time, and has admitted x of alice, y of bob: this claim of carol waits until one of them is released"},
		"a claim that is being deleted frees its place":   {[]string{"p: g:ci;;1"}, "*-x=alice(ci)@dev y=bob(ci)@dev", "admit y"},
		"the older claim first":                           {[]string{"p: g:ci;;1"}, "y=bob(ci)@dev x=alice(ci)@dev", "admit y\nhold x: ClaimPolicy p admits at most 1 claim of all its subjects together at a time, and has admitted y of bob: this claim of alice waits until one of them is released"},
		"unless it has a lower priority":                  {[]string{"p: g:ci;;1;;5"}, "y=bob(ci)@dev x^1=alice(ci)@dev", "admit x\nhold y: ClaimPolicy p admits at most 1 claim of all its subjects together at a time, and has admitted x of alice: this claim of bob waits until one of them is released"},
		"a priority that is not permitted does not count": {[]string{"p: g:ci;;1"}, "y=bob(ci)@dev x^1=alice(ci)@dev", "admit y\nhold x: ClaimPolicy p admits at most 1 claim of all its subjects together at a time, and has admitted y of bob: this claim of alice waits until one of them is released"},
		"an admission is kept, whatever comes":            {[]string{"p: g:ci;;1;;5"}, "+y=bob(ci)@dev x^5=alice(ci)@dev", "hold x: ClaimPolicy p admits at most 1 claim of all its subjects together at a time, and has admitted y of bob: this claim of alice waits until one of them is released"},
		"a cluster counts, whatever the limit":            {[]string{"p: g:ci;;1"}, "*y=bob(ci)@dev *x=alice(ci)@dev", ""},
		"all limits apply":                                {[]string{"p: g:ci;;5", "q: u:alice;;;1"}, "*x=alice(ci)@dev y=alice(ci)@dev", "hold y: ClaimPolicy q admits at most 1 claim of alice at a time, and has admitted x: this claim of alice waits until one of them is released"},
		"no claims at all":                                {[]string{"p: g:ci;;0"}, "x=alice(ci)@dev", "hold x: ClaimPolicy p admits no claims of all its subjects together: ask somebody who may write ClaimPolicies here"},
		"a pool that does not exist":                      {[]string{"p: g:ci;;1"}, "x=alice(ci)@gone y=bob(ci)@dev", "hold x: ClusterPool gone does not exist in this namespace, or is being deleted: the claim is admitted once it can get a cluster\nadmit y"},
		"a pool that is gone frees a place in two passes": {[]string{"p: g:ci;;1"}, "+x=alice(ci)@gone y=bob(ci)@dev", "hold x: ClusterPool gone does not exist in this namespace, or is being deleted: the claim is admitted once it can get a cluster\nhold y: ClaimPolicy p admits at most 1 claim of all its subjects together at a time, and has admitted x of alice: this claim of bob waits until one of them is released"},
		"a cluster outlives its pool":                     {[]string{"p: g:ci;;1"}, "*x=alice(ci)@gone", ""},
		"a claim that cannot be read":                     {[]string{"p: g:ci;;1"}, "?x=alice(ci)@dev y=bob(ci)@dev", "hold x: The claim cannot be read: it is admitted once it can get a cluster\nadmit y"},
		"the first in line reserves in other policies":    {[]string{"p: g:ci;;2", "q: u:alice;;;1"}, "*x=alice(ci)@dev y=alice(ci)@dev z=bob(ci)@dev", "hold y: ClaimPolicy q admits at most 1 claim of alice at a time, and has admitted x: this claim of alice waits until one of them is released\nhold z: ClaimPolicy p admits at most 2 claims of all its subjects together at a time, and has admitted x of alice; a place is reserved for y of alice: this claim of bob waits until one of them is released"},
		"a claim that is never admitted does not reserve": {[]string{"p: g:ci;;1", "q: u:alice;;0"}, "y=alice(ci)@dev z=bob(ci)@dev", "hold y: ClaimPolicy q admits no claims of all its subjects together: ask somebody who may write ClaimPolicies here\nadmit z"},
		"nor is it in line for other limits": {[]string{"p: g:ci;;1", "q: u:alice;;0", "r: g:dev;;1"}, "*x=bob(ci)@dev y=alice(ci)@dev z=carol(ci,dev)@dev v=dave(dev)@dev", "hold y: ClaimPolicy q admits no claims of all its subjects together: ask somebody who may write ClaimPolicies here\n" +
			"hold z: ClaimPolicy p admits at most 1 claim of all its subjects together at a time, and has admitted x of bob: this claim of carol waits until one of them is released\n" +
			"hold v: ClaimPolicy r admits at most 1 claim of all its subjects together at a time; a place is reserved for z of carol: this claim of dave waits until one of them is released"},
		"others in line do not reserve":                   {[]string{"p: g:ci;;3", "q: u:alice;;;1"}, "*x=alice(ci)@dev y=alice(ci)@dev y2=alice(ci)@dev z=bob(ci)@dev", "hold y: ClaimPolicy q admits at most 1 claim of alice at a time, and has admitted x: this claim of alice waits until one of them is released\nhold y2: ClaimPolicy q admits at most 1 claim of alice at a time, and has admitted x: this claim of alice waits until one of them is released\nadmit z"},
		"nobody reserves in the policy whose limit it is": {[]string{"p: g:ci;;2;1"}, "*x=alice(ci)@dev y=alice(ci)@dev z=bob(ci)@dev", "hold y: ClaimPolicy p admits at most 1 claim of alice at a time, and has admitted x: this claim of alice waits until one of them is released\nadmit z"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{Claims: claims(tc.claims), Pools: []string{"dev", "test", "prod"}}
			for _, p := range tc.policies {
				s.Policies = append(s.Policies, policy(p))
			}
			if got := Decide(s).String(); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

var allPools = []string{"a", "b", "c"}

// history is a namespace in which claims come, are served, and go.
type history struct {
	rng      *rand.Rand
	policies []Policy
	pools    []string
	claims   []Claim
	made     int
	now      time.Time
	hasSets  bool
}

func newHistory(seed uint64) *history {
	h := &history{rng: rand.New(rand.NewPCG(seed, 7)), now: noon, pools: slices.Clone(allPools)}
	h.hasSets = h.rng.IntN(2) == 0
	for i := range 1 + h.rng.IntN(4) {
		var text []string
		for _, s := range []string{"u:alice", "u:bob", "g:ci", "g:dev", "s:bot"} {
			if h.rng.IntN(2) == 0 {
				text = append(text, s)
			}
		}
		p := policy(fmt.Sprintf("p%d: %s", i, strings.Join(append(text, "u:carol"), " ")))
		for _, pool := range allPools {
			if h.rng.IntN(3) == 0 {
				p.Spec.Pools = append(p.Spec.Pools, pool)
			}
		}
		number := func() *int32 {
			if h.rng.IntN(3) == 0 {
				return nil
			}
			n := int32((1 + h.rng.IntN(9)) / 3) // seldom 0
			return &n
		}
		p.Spec.MaxClaims, p.Spec.MaxClaimsPerUser = number(), number()
		if h.rng.IntN(2) == 0 {
			p.Spec.MaxPriority = new(int32(h.rng.IntN(4) - 1))
		}
		h.policies = append(h.policies, p)
	}
	return h
}

func (h *history) create() {
	users := []Creator{{"alice", []string{"ci"}}, {"bob", []string{"ci", "dev"}}, {"carol", nil}, {"system:serviceaccount:ci:bot", []string{"dev"}}, {"eve", nil}}
	h.made++
	c := Claim{
		Name: fmt.Sprintf("x%03d", h.made), Created: h.now, Creator: users[h.rng.IntN(len(users))], Pool: allPools[h.rng.IntN(3)],
		Priority: h.rng.IntN(2*highest+1) - highest,
	}
	if !h.hasSets || h.rng.IntN(2) == 0 {
		h.claims = append(h.claims, c)
		return
	}
	c.Set = Set{Name: c.Name, Created: c.Created, Size: 1 + h.rng.IntN(3)}
	for i := range c.Set.Size {
		c.Name = fmt.Sprintf("%s-%d", c.Set.Name, i)
		h.claims = append(h.claims, c)
	}
}

// ofSet returns the claims of the set of c, and how many of them are admitted, and have clusters.
func (h *history) ofSet(c Claim) (all []Claim, admitted, served int) {
	for _, other := range h.claims {
		if other.Set.Name != c.Set.Name {
			continue
		}
		all = append(all, other)
		if other.Admitted.IsTrue() {
			admitted++
		}
		if other.HasCluster {
			served++
		}
	}
	return all, admitted, served
}

// canBeAdmitted reports whether the set of a claim has all its claims, or was served in part, and its limits are large
// enough for it. It is true for a claim without a set, unless a limit is 0.
func (h *history) canBeAdmitted(c Claim) bool {
	if c.Set.Name == "" {
		return !slices.ContainsFunc(h.limits(c), func(l limit) bool { return l.most == 0 })
	}
	all, _, served := h.ofSet(c)
	return (served > 0 || len(all) == c.Set.Size) && !slices.ContainsFunc(h.limits(c), func(l limit) bool { return l.most < c.Set.Size })
}

// places returns the number of places that a claim needs at once.
func (h *history) places(c Claim) int {
	if c.Set.Name == "" {
		return 1
	}
	all, admitted, _ := h.ofSet(c)
	return len(all) - admitted
}

// highest is the highest priority of the claims, and -highest the lowest.
const highest = 2

// priority is the one in effect.
func (h *history) priority(c Claim) int {
	most, isSet := 0, false
	for _, p := range h.policies {
		if m := p.Spec.MaxPriority; m != nil && p.Applies(c.Creator, c.Pool) && (!isSet || int(*m) < most) {
			most, isSet = int(*m), true
		}
	}
	return min(c.Priority, most)
}

// isBefore reports whether a is before b in line.
func (h *history) isBefore(a, b Claim) bool {
	a.Name, b.Name = cmp.Or(a.Set.Name, a.Name), cmp.Or(b.Set.Name, b.Name)
	at := func(c Claim) time.Time { return c.Created.Add(-time.Duration(h.priority(c)) * time.Minute) }
	if c := cmp.Or(at(a).Compare(at(b)), a.Created.Compare(b.Created)); c != 0 {
		return c < 0
	}
	return a.Name < b.Name
}

// pass decides on the claims in a random order, and takes the steps, some of them only. It reports whether it
// has taken all, and none withdraws an admission: the next pass gives that place to another claim.
func (h *history) pass(all bool) (settled bool) {
	h.now = h.now.Add(time.Second)
	in := Snapshot{Policies: slices.Clone(h.policies), Claims: slices.Clone(h.claims), Pools: slices.Clone(h.pools)}
	h.rng.Shuffle(len(in.Policies), func(i, j int) { in.Policies[i], in.Policies[j] = in.Policies[j], in.Policies[i] })
	h.rng.Shuffle(len(in.Claims), func(i, j int) { in.Claims[i], in.Claims[j] = in.Claims[j], in.Claims[i] })
	settled = all
	for _, st := range Decide(in).Steps {
		if all || h.rng.IntN(3) > 0 {
			i := slices.IndexFunc(h.claims, func(c Claim) bool { return c.Name == st.Claim })
			settled = settled && (st.Admitted.IsTrue() || !h.claims[i].Admitted.IsTrue())
			h.claims[i].Admitted = st.Admitted
		}
	}
	return settled
}

// permitted reports whether the policies permit a claim, and its pool exists.
func (h *history) permitted(c Claim) bool {
	return slices.Contains(h.pools, c.Pool) && slices.ContainsFunc(h.policies, func(p Policy) bool { return p.Applies(c.Creator, c.Pool) })
}

// changePools creates or deletes a pool now and then.
func (h *history) changePools() {
	if h.rng.IntN(8) > 0 {
		return
	}
	pool := allPools[h.rng.IntN(3)]
	if i := slices.Index(h.pools, pool); i >= 0 {
		h.pools = slices.Delete(h.pools, i, i+1)
		return
	}
	h.pools = append(h.pools, pool)
}

// assign gives clusters to some of the admitted claims.
func (h *history) assign() {
	for i := range h.claims {
		c := &h.claims[i]
		if c.Set.Name != "" {
			// The pool serves a set once all its claims are admitted; a kill leaves some of them without clusters.
			all, admitted, served := h.ofSet(*c)
			if served == 0 && (len(all) < c.Set.Size || admitted < c.Set.Size) {
				continue
			}
		}
		c.HasCluster = c.HasCluster || c.Admitted.IsTrue() && slices.Contains(h.pools, c.Pool) && h.rng.IntN(2) == 0
	}
}

// used counts the admitted claims that a limit counts.
func (h *history) used(l limit) int {
	n := 0
	for _, c := range h.claims {
		p := h.policies[slices.IndexFunc(h.policies, func(p Policy) bool { return p.Name == l.policy })]
		if c.Admitted.IsTrue() && p.Applies(c.Creator, c.Pool) && (l.user == "" || l.user == c.Creator.User) {
			n++
		}
	}
	return n
}

func (h *history) limits(c Claim) []limit {
	var apply []Policy
	for _, p := range h.policies {
		if p.Applies(c.Creator, c.Pool) {
			apply = append(apply, p)
		}
	}
	return limitsOf(apply, c.Creator.User)
}

// check returns what is wrong after a pass.
func (h *history) check(settled bool) error {
	var first *Claim
	for i, c := range h.claims {
		if c.Admitted.IsTrue() && !c.HasCluster && !h.permitted(c) && settled {
			return fmt.Errorf("%s is admitted, and no policy permits it, or its pool does not exist", c.Name)
		}
		if c.HasCluster && !c.Admitted.IsTrue() {
			return fmt.Errorf("%s has lost its admission with its cluster: %s", c.Name, c.Admitted.Message)
		}
		for _, l := range h.limits(c) {
			if n := h.used(l); n > l.most {
				return fmt.Errorf("%d claims are admitted by %+v", n, l)
			}
		}
		if _, admitted, served := h.ofSet(c); settled && c.Set.Name != "" && served == 0 && admitted != 0 && admitted != c.Set.Size && h.canBeAdmitted(c) {
			return fmt.Errorf("%d of %d claims of set %s are admitted", admitted, c.Set.Size, c.Set.Name)
		}
		if !c.Admitted.IsTrue() && h.permitted(c) && h.canBeAdmitted(c) && (first == nil || h.isBefore(c, *first)) {
			first = &h.claims[i]
		}
	}
	if first != nil && settled && !slices.ContainsFunc(h.limits(*first), func(l limit) bool { return h.used(l)+h.places(*first) > l.most }) {
		return fmt.Errorf("%s is the first in line, is within all limits, and waits: %s", first.Name, first.Admitted.Message)
	}
	return nil
}

// Whatever comes and goes, no limit is exceeded, and the first in line waits only for a limit that is used up.
func TestHistoriesStayWithinTheLimits(t *testing.T) {
	for range 50 {
		seed := rand.Uint64()
		h := newHistory(seed)
		for step := range 150 {
			for range h.rng.IntN(3) {
				h.create()
			}
			if err := h.check(h.pass(h.rng.IntN(2) == 0)); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			h.assign()
			h.changePools()
			h.claims = slices.DeleteFunc(h.claims, func(c Claim) bool { return h.rng.IntN(12) == 0 })
		}
	}
}

// A claim waits at most as long as the claims before it hold their clusters, however many come after
// it. Without priorities the bound is exact, as the contract of Decide says. A claim that is admitted in pass n is gone after
// pass n+held+1 at the latest, so its place is free in pass n+held+2. Let a claim be the first that waits in
// pass n, and let no claim that comes later be before it. Claims that are admitted later cannot make it wait: they get a place of a limit only if it has
// reserved another place there, or if a limit of the same policy is full; and the last place of that limit
// becomes free together with one that it takes first. Those that were admitted in pass n or before are gone in
// pass n+held+2. So it waits in at most held+2 passes, and then the next one is the first.
//
// A claim that comes later is before a claim of priority p only if it comes within (highest-p) minutes, which
// are 60 passes each. From then on at most existing-1 claims are before it.
//
// For example, 39 claims wait for the one place of a policy, and each holds it for held+1 or held+2 passes.
func TestNobodyStarves(t *testing.T) {
	const (
		held     = 3 // passes for which a claim holds its cluster at least; one more at most
		existing = 40
		bound    = (existing - 1) * (held + 2)
	)
	for range 10 {
		seed := rand.Uint64()
		h := newHistory(seed)
		since, waited := map[string]int{}, map[string]int{}
		for step := range 600 {
			for len(h.claims) < existing {
				h.create()
			}
			h.pass(true)
			for _, c := range h.claims {
				switch {
				case !c.Admitted.IsTrue() && h.permitted(c) && h.canBeAdmitted(c):
					if waited[c.Name]++; waited[c.Name] > bound+(highest-h.priority(c))*60 {
						t.Fatalf("seed %d, step %d: %s of %s on %s waits: %s\n%+v", seed, step, c.Name, c.Creator.User, c.Pool, c.Admitted.Message, h.policies)
					}
				case since[c.Name] == 0:
					since[c.Name] = step + 1
				}
			}
			h.claims = slices.DeleteFunc(h.claims, func(c Claim) bool {
				return !h.permitted(c) || !c.Admitted.IsTrue() && !h.canBeAdmitted(c) || c.Admitted.IsTrue() && step+1-since[c.Name] >= held+h.rng.IntN(2)
			})
		}
	}
}

func TestPrioritiesAreThoseOfTheStrictestPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		policies []string
		claim    string
		want     int
		explain  string
	}{
		"no policies, no limit":                        {nil, "x^1000=alice@dev", 1000, ""},
		"a policy that sets none":                      {[]string{"p: u:alice"}, "x^10=alice@dev", 0, "no ClaimPolicy permits alice a higher one on pool dev"},
		"a negative priority is always permitted":      {[]string{"p: u:alice"}, "x^-10=alice@dev", -10, ""},
		"a policy that sets one":                       {[]string{"p: u:alice;;;;5"}, "x^10=alice@dev", 5, "ClaimPolicy p permits alice at most 5 on pool dev"},
		"within it":                                    {[]string{"p: u:alice;;;;10"}, "x^10=alice@dev", 10, ""},
		"a policy that sets none does not limit it":    {[]string{"p: u:alice;;;;5", "q: u:alice"}, "x^10=alice@dev", 5, "ClaimPolicy p permits alice at most 5 on pool dev"},
		"the lowest of two":                            {[]string{"p: u:alice;;;;5", "q: u:alice;;;;3"}, "x^10=alice@dev", 3, "ClaimPolicy q permits alice at most 3 on pool dev"},
		"a policy of others":                           {[]string{"p: u:bob;;;;5"}, "x^10=alice@dev", 0, "no ClaimPolicy permits alice a higher one on pool dev"},
		"a policy of another pool":                     {[]string{"p: u:alice;prod;;;5"}, "x^10=alice@dev", 0, "no ClaimPolicy permits alice a higher one on pool dev"},
		"an unknown creator":                           {[]string{"p: u:alice;;;;5"}, "x^10=@dev", 0, "no ClaimPolicy permits its unknown creator a higher one on pool dev"},
		"a policy that cannot be read permits none":    {[]string{"p: u:alice;;;;5", "q?: u:alice;;;;9"}, "x^10=alice@dev", 0, "ClaimPolicy q permits alice at most 0 on pool dev"},
		"a limit below 0 holds for every claim":        {[]string{"p: u:alice;;;;-5"}, "x=alice@dev", -5, "ClaimPolicy p permits alice at most -5 on pool dev"},
		"the first of two with the same is the reason": {[]string{"q: u:alice;;;;5", "p: u:alice;;;;5"}, "x^6=alice@dev", 5, "ClaimPolicy p permits alice at most 5 on pool dev"},
	} {
		var policies []Policy
		for _, text := range c.policies {
			policies = append(policies, policy(text))
		}
		claim := claims(c.claim)[0]
		got, explain := LimitPriority(policies, claim), ""
		if got != claim.Priority {
			explain = FindPriorityLimit(policies, claim).Explain(claim)
		}
		if got != c.want || explain != c.explain {
			t.Errorf("%s: %d (%s), want %d (%s)", name, got, explain, c.want, c.explain)
		}
	}
}

func TestReadCreator(t *testing.T) {
	c := &hivev1.ClusterClaim{}
	c.Annotations = map[string]string{hivev1.AnnotationCreator: "alice", hivev1.AnnotationCreatorGroups: "ci\nsystem:authenticated"}
	if got := ReadCreator(c); got.User != "alice" || !slices.Equal(got.Groups, []string{"ci", "system:authenticated"}) {
		t.Errorf("%+v", got)
	}
	if got := ReadCreator(&hivev1.ClusterClaim{}); got.User != "" || got.Groups != nil {
		t.Errorf("the creator of a claim without annotations is %+v", got)
	}
}

func TestLifetimesAreThoseOfTheStrictestPolicy(t *testing.T) {
	span := func(text string) *hivev1.Duration {
		if text == "" {
			return nil
		}
		d := hivev1.Duration(text)
		return &d
	}
	with := func(text, fallback, maximum string) Policy {
		p := policy(text)
		p.Spec.Lifetime = &v1alpha1.ClaimPolicyLifetime{Default: span(fallback), Maximum: span(maximum)}
		return p
	}
	for name, c := range map[string]struct {
		policies         []Policy
		fallback, most   string
		wantDefault, max string
	}{
		"none":                       {nil, "1h", "2h", "1h", "2h"},
		"a policy without any":       {[]Policy{policy("p: u:alice")}, "1h", "2h", "1h", "2h"},
		"its default counts":         {[]Policy{with("p: u:alice", "90m", "")}, "1h", "2h", "90m", "2h"},
		"the shorter maximum":        {[]Policy{with("p: u:alice", "", "3h")}, "", "2h", "", "2h"},
		"of the policy":              {[]Policy{with("p: u:alice", "", "1h")}, "", "2h", "", "1h"},
		"the shortest of two":        {[]Policy{with("p: u:alice", "30m", "1h"), with("q: u:alice", "20m", "")}, "", "", "20m", "1h"},
		"one of others":              {[]Policy{with("p: u:bob", "30m", "1h")}, "", "", "", ""},
		"one that is not valid":      {[]Policy{with("p: u:alice", "soon", "1w")}, "1h", "2h", "1h", "2h"},
		"a maximum of 0 is no limit": {[]Policy{with("p: u:alice", "", "0")}, "", "2h", "", "2h"},
	} {
		fallback, most := NarrowLifetimeBounds(c.policies, Creator{User: "alice"}, "dev", span(c.fallback), span(c.most))
		text := func(d *hivev1.Duration) string {
			if d == nil {
				return ""
			}
			return string(*d)
		}
		if text(fallback) != c.wantDefault || text(most) != c.max {
			t.Errorf("%s: %q and %q, want %q and %q", name, text(fallback), text(most), c.wantDefault, c.max)
		}
	}
}
