package scaling

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Reserved is the number and the size of the instances that a data plane keeps nodes for.
type Reserved struct {
	Count int
	Size  string
	// Units is the number of units of the size; 0 when the type has no such size.
	Units int
}

// Version is an operator version on a data plane, and the Kafka versions that it can run.
type Version struct {
	Strimzi string
	Ready   bool
	// Kafka and KafkaIBP are in no particular order.
	Kafka, KafkaIBP []string
}

// ReservedInstance is one reserved instance.
type ReservedInstance struct {
	// Name is also the name of its namespace.
	Name  string `json:"name"`
	Type  string `json:"type"`
	Size  string `json:"size"`
	Units int    `json:"units"`
	// Strimzi, Kafka and KafkaIBP are the versions that it reserves for.
	Strimzi  string `json:"strimzi"`
	Kafka    string `json:"kafka"`
	KafkaIBP string `json:"kafkaIbp"`
}

// Reasons why a data plane has reserved instances, or has none.
const (
	Warm         Reason = "Reserved"
	NoneReserved Reason = "NoneReserved"
	NotReady     Reason = "NotReady"
	NoVersion    Reason = "NoVersion"
)

// Prewarm lists the reserved instances that should be on a data plane.
type Prewarm struct {
	// Want are all reserved instances that should be there; any other must be deleted.
	Want []ReservedInstance
	// Blocked is set when some should be there and cannot. Instances of users are not affected
	// (they were in fleet I).
	Blocked bool
	Reason  Reason
	// Message explains the reason.
	Message string
}

// PlanPrewarm returns the reserved instances that should be on p: for each of its types the number
// that the region sets, in the newest versions that the data plane reports as ready.
func (r Region) PlanPrewarm(p Plane) Prewarm {
	wanted := r.reservedTypes(p)
	switch {
	case p.capacityStage() != stageReady:
		return Prewarm{Reason: NotReady, Message: "a data plane that is not Ready has no reserved instances"}
	case len(wanted) == 0:
		return Prewarm{Reason: NoneReserved, Message: "the region reserves no instances of its types"}
	}
	v, ok := latestVersion(p.Versions)
	if !ok {
		return Prewarm{Blocked: true, Reason: NoVersion, Message: "the data plane reports no ready version, so no instance can be reserved"}
	}
	out := Prewarm{Reason: Warm}
	var words []string
	for _, t := range wanted {
		if t.Reserved.Units == 0 {
			out.Blocked, out.Reason = true, UnknownSize
			words = append(words, fmt.Sprintf("type %s has no size %q: correct reserved.size of its FleetRegion", t.Name, t.Reserved.Size))
			continue
		}
		for n := range t.Reserved.Count {
			out.Want = append(out.Want, ReservedInstance{
				Name: fmt.Sprintf("reserved-kafka-%s-%d", t.Name, n+1), Type: t.Name, Size: t.Reserved.Size, Units: t.Reserved.Units,
				Strimzi: v.Strimzi, Kafka: slices.MaxFunc(v.Kafka, compareVersions), KafkaIBP: slices.MaxFunc(v.KafkaIBP, compareVersions),
			})
		}
		words = append(words, fmt.Sprintf("%d of %s in size %s", t.Reserved.Count, t.Name, t.Reserved.Size))
	}
	out.Message = strings.Join(words, "; ")
	return out
}

// reservedTypes returns the types of p for which the region reserves instances, sorted by name.
func (r Region) reservedTypes(p Plane) []Type {
	var out []Type
	for _, t := range r.Types {
		if t.Reserved.Count > 0 && slices.ContainsFunc(p.Rooms, func(m Room) bool { return m.Type == t.Name }) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b Type) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// latestVersion returns the newest version that is ready and has Kafka versions.
func latestVersion(all []Version) (Version, bool) {
	var out Version
	found := false
	for _, v := range all {
		if v.Ready && len(v.Kafka) > 0 && len(v.KafkaIBP) > 0 && (!found || compareVersions(v.Strimzi, out.Strimzi) > 0) {
			out, found = v, true
		}
	}
	return out, found
}

// compareVersions compares two versions: digits by their number, everything else as text. A version
// with a suffix word comes before the one without: 3.0.0-rc1 before 3.0.0.
func compareVersions(a, b string) int {
	for a != "" && b != "" {
		x, restA := cutVersionPart(a)
		y, restB := cutVersionPart(b)
		if c := compareVersionParts(x, y); c != 0 {
			return c
		}
		a, b = restA, restB
	}
	switch {
	case isPrerelease(a):
		return -1
	case isPrerelease(b):
		return 1
	}
	return cmp.Compare(len(a), len(b))
}

func isPrerelease(rest string) bool {
	rest, dash := strings.CutPrefix(rest, "-")
	return dash && rest != "" && !isDigit(rest[0])
}

// cutVersionPart splits s after its leading digits, or before its first digit.
func cutVersionPart(s string) (string, string) {
	n := 1
	for n < len(s) && isDigit(s[n]) == isDigit(s[0]) {
		n++
	}
	return s[:n], s[n:]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func compareVersionParts(x, y string) int {
	i, errX := strconv.ParseUint(x, 10, 64)
	j, errY := strconv.ParseUint(y, 10, 64)
	if errX == nil && errY == nil {
		return cmp.Compare(i, j)
	}
	return cmp.Compare(x, y)
}
