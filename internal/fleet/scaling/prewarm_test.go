package scaling_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/fleet/scaling"
)

// strimzis parses "v0.30.0=3.1.0,3.2.0 v0.31.0?=3.3.0": versions with their Kafka versions; "?" is
// not ready.
func strimzis(text string) []scaling.Version {
	var out []scaling.Version
	for _, word := range strings.Fields(text) {
		name, kafkas, _ := strings.Cut(word, "=")
		v := scaling.Version{Strimzi: strings.TrimSuffix(name, "?"), Ready: !strings.HasSuffix(name, "?")}
		if kafkas != "" {
			v.Kafka, v.KafkaIBP = strings.Split(kafkas, ","), strings.Split(kafkas, ",")
		}
		out = append(out, v)
	}
	return out
}

func TestReserve(t *testing.T) {
	for name, tt := range map[string]struct {
		types, plane, versions, want string
	}{
		"as many as the region says, from 1":         {"reserve=2", "a:10", "v1=3.1.0", "reserved-kafka-std-1 reserved-kafka-std-2 v1 3.1.0"},
		"a full data plane, too":                     {"reserve=1", "a:10-10", "v1=3.1.0", "reserved-kafka-std-1 v1 3.1.0"},
		"the newest version that is ready":           {"reserve=1", "a:10", "v0.9=3.1.0 v0.10=3.2.0 v0.11?=3.3.0", "reserved-kafka-std-1 v0.10 3.2.0"},
		"the newest of what it runs":                 {"reserve=1", "a:10", "v1=3.9.0,3.10.0,3.2.0", "reserved-kafka-std-1 v1 3.10.0"},
		"a candidate comes before its release":       {"reserve=1", "a:10", "v1=3.1.0,3.1.0-rc1", "reserved-kafka-std-1 v1 3.1.0"},
		"a later build comes after the one before":   {"reserve=1", "a:10", "v1-1=3.1.0 v1-0=3.2.0", "reserved-kafka-std-1 v1-1 3.1.0"},
		"a version that runs nothing is none":        {"reserve=1", "a:10", "v1=3.1.0 v2", "reserved-kafka-std-1 v1 3.1.0"},
		"one that is not Ready has none":             {"reserve=1", "a:waiting=10", "v1=3.1.0", "NotReady"},
		"nor has one that is to go":                  {"reserve=1", "a:doubted=10", "v1=3.1.0", "NotReady"},
		"a silent one keeps its own":                 {"reserve=1", "a:10+silent", "v1=3.1.0", "reserved-kafka-std-1 v1 3.1.0"},
		"no version is ready":                        {"reserve=1", "a:10", "v1?=3.1.0", "blocked NoVersion"}, // fleet I
		"no version at all":                          {"reserve=1", "a:10", "", "blocked NoVersion"},
		"none reserved, no version: nothing blocks":  {"reserve=0", "a:10", "", "NoneReserved"},
		"of a type that it does not take":            {"reserve=1", "a:10+is=dev", "v1=3.1.0", "NoneReserved"},
		"of each of its types":                       {"reserve=1;name=dev reserve=1", "a:10+also=dev", "v1=3.1.0", "reserved-kafka-dev-1 reserved-kafka-std-1 v1 3.1.0"},
		"a name with a dash in it":                   {"name=a-b reserve=1", "a:10+is=a-b", "v1=3.1.0", "reserved-kafka-a-b-1 v1 3.1.0"},
		"a size that there is not blocks its type":   {"reserve=1;name=dev reserve=1", "a:10+also=dev", "v1=3.1.0", "blocked UnknownSize reserved-kafka-dev-1 v1 3.1.0"},
		"Registered ones are kept warm like others":  {"reserve=1", "a:10+registered", "v1=3.1.0", "reserved-kafka-std-1 v1 3.1.0"},
		"one that cannot be read is left alone":      {"reserve=1", "a:10+unreadable", "v1=3.1.0", "NotReady"},
		"versions without numbers are compared also": {"reserve=1", "a:10", "vb=1 va=2", "reserved-kafka-std-1 vb 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := region(tt.types).planes(tt.plane)
			w.Planes[0].Versions = strimzis(tt.versions)
			if strings.HasPrefix(tt.want, "blocked UnknownSize") {
				w.Region.Types[0].Reserved.Units = 0
			}
			got := w.Region.PlanPrewarm(w.Planes[0])
			if said := reserved(got); said != tt.want {
				t.Errorf("got %s, want %s", said, tt.want)
			}
			if got.Reason == "" || got.Message == "" {
				t.Errorf("it does not say why: %+v", got)
			}
		})
	}
}

func reserved(p scaling.Prewarm) string {
	var out []string
	if p.Blocked {
		out = append(out, "blocked")
	}
	if p.Blocked || len(p.Want) == 0 {
		out = append(out, string(p.Reason))
	}
	for _, r := range p.Want {
		out = append(out, r.Name)
	}
	if n := len(p.Want); n > 0 {
		out = append(out, p.Want[n-1].Strimzi, p.Want[n-1].Kafka)
	}
	return strings.Join(out, " ")
}

// The latest versions do not depend on the order of the lists.
func TestVersionsHaveOneOrder(t *testing.T) {
	all := []string{"3.0.0-rc1", "3.0.0-rc2", "3.0.0", "3.0.0-0", "3.0.0-1", "3.0.1", "3.10", "3.9.1", "v4", "strimzi-cluster-operator.v0.24.0-0", "strimzi-cluster-operator.v0.9.0-0", "99999999999999999999", ""}
	r := rand.New(rand.NewPCG(1, 1))
	want := ""
	for range 200 {
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		w := region("reserve=1").planes("a:10")
		for _, v := range all {
			w.Planes[0].Versions = append(w.Planes[0].Versions, scaling.Version{Strimzi: v, Ready: true, Kafka: slices.Clone(all), KafkaIBP: slices.Clone(all)})
		}
		got := fmt.Sprint(w.Region.PlanPrewarm(w.Planes[0]).Want)
		if want == "" {
			want = got
		}
		if got != want {
			t.Fatalf("%s, and in another order %s", want, got)
		}
	}
}
