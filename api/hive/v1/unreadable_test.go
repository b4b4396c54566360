package v1_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := hivev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// decode reads as every client does.
func decode(t *testing.T, raw string) (runtime.Object, error) {
	t.Helper()
	o, _, err := serializer.NewCodecFactory(scheme(t)).UniversalDeserializer().Decode([]byte(raw), nil, nil)
	return o, err
}

func TestWhatCanBeReadIsRead(t *testing.T) {
	for name, tt := range map[string]struct{ kind, rest, left, says string }{
		"all of it":                 {"ClusterPool", `"spec":{"size":2}`, `"size":2`, ``},
		"a word for a number":       {"ClusterPool", `"spec":{"maxSize":5,"size":"three"}`, `"maxSize":5`, `spec.size: "three" is not a whole number of at most 2147483647`},
		"a number that is too high": {"ClusterPool", `"spec":{"maxSize":5,"size":3000000000}`, `"maxSize":5`, `spec.size: 3000000000 is not a whole number of at most 2147483647`},
		"a fraction":                {"ClusterPool", `"spec":{"maxSize":5,"size":1.5}`, `"maxSize":5`, `spec.size: 1.5 is not a whole number of at most 2147483647`},
		"a word for yes":            {"ClusterPool", `"spec":{"size":2,"skipMachinePools":"yes"}`, `"size":2`, `spec.skipMachinePools: "yes" is not true or false`},
		"a number for a word":       {"ClusterClaim", `"spec":{"clusterPoolName":"p","lifetime":8}`, `"clusterPoolName":"p"`, `spec.lifetime: 8 is not a string`},
		"the first of two":          {"ClusterPool", `"spec":{"maxSize":"y","runningCount":2,"size":"x"}`, `"runningCount":2`, `spec.maxSize: "y" is not a whole number of at most 2147483647`},
		"a list for an object":      {"ClusterPool", `"spec":{"claimLifetime":[],"size":2}`, `"size":2`, `spec.claimLifetime: a list is not an object`},
		"a word for a list":         {"ClusterPool", `"spec":{"inventory":"a","size":2}`, `"size":2`, `spec.inventory: "a" is not a list`},
		"an object for a word":      {"ClusterPool", `"spec":{"baseDomain":{"a":1},"size":2}`, `"size":2`, `spec.baseDomain: an object is not a string`},
		"a value in a map":          {"ClusterPool", `"spec":{"labels":{"a":1,"b":"c"}}`, `"b":"c"`, `spec.labels: a number is not a string`},
		"a field of an item":        {"ClusterPool", `"spec":{"inventory":[{"kind":1,"name":"a"}],"size":2}`, `"name":"a"`, `spec.inventory.kind: a number is not a string`},
		"a variable, not its value": {"ClusterPool", `"spec":{"installerEnv":[{"name":"TOKEN","value":4711}],"size":2}`, `"size":2`, `spec.installerEnv.value: a number is not a string`},
		"a long value, its start":   {"ClusterPool", `"spec":{"maxSize":5,"size":"` + strings.Repeat("x", 99) + `"}`, `"maxSize":5`, `spec.size: "` + strings.Repeat("x", 64) + `" is not a whole number of at most 2147483647`},
		"a spec that is none":       {"ClusterDeployment", `"spec":"gone","status":{"powerState":"Running"}`, `"powerState":"Running"`, `spec: "gone" is not an object`},
		"a time, and what precedes": {"ClusterClaim", `"spec":{"clusterPoolName":"p"},"status":{"conditions":[{"lastProbeTime":"2026-01-01t00:00:00z","type":"A"}]}`, `"clusterPoolName":"p"`, `parsing time "2026-01-01t00:00:00z" as "2006-01-02T15:04:05Z07:00": cannot parse "t00:00:00z" as "T"`},
		"a list for a time":         {"ClusterClaim", `"spec":{"clusterPoolName":"p"},"status":{"conditions":[{"lastProbeTime":[],"type":"A"}]}`, `"clusterPoolName":"p"`, `status.conditions.lastProbeTime: a list is not a string`},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := decode(t, fmt.Sprintf(`{"apiVersion":"hive.openshift.io/v1","kind":%q,"metadata":{"name":"o","uid":"u","finalizers":["f/x"]},%s}`, tt.kind, tt.rest))
			if err != nil {
				t.Fatal(err)
			}
			if got := reflect.ValueOf(o).Elem().FieldByName("Unreadable").String(); got != tt.says {
				t.Errorf("it says\n%s, want\n%s", got, tt.says)
			}
			raw, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{tt.left, `"uid":"u"`, `"finalizers":["f/x"]`} {
				if !strings.Contains(string(raw), part) {
					t.Errorf("%s is not left in\n%s", part, raw)
				}
			}
			if strings.Contains(string(raw), "nreadable") {
				t.Errorf("it would be stored: %s", raw)
			}
		})
	}
}

// Hive B14; known from the field as "lifetime: 1w froze all claims".
func TestOneUnreadableObjectHidesNoOtherOfAnyKind(t *testing.T) {
	for kind, typ := range scheme(t).KnownTypes(hivev1.GroupVersion) {
		if _, isObject := reflect.New(typ).Interface().(metav1.Object); !isObject {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			o, err := decode(t, fmt.Sprintf(`{"apiVersion":"hive.openshift.io/v1","kind":"%sList","metadata":{"resourceVersion":"7"},"items":[
				{"metadata":{"name":"a"}},{"metadata":{"name":"bad"},"spec":7,"status":[]},{"metadata":{"name":"b"}}]}`, kind))
			if err != nil {
				t.Fatal(err)
			}
			items := reflect.ValueOf(o).Elem().FieldByName("Items")
			var got []string
			for i := range items.Len() {
				item := items.Index(i).Addr().Interface().(interface {
					metav1.Object
					Whole() error
				})
				got = append(got, fmt.Sprintf("%s %v", item.GetName(), item.Whole()))
			}
			if want := "[a <nil> bad spec: 7 is not an object b <nil>]"; fmt.Sprint(got) != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// A client reads its answers into objects that it has: what was said before does not stay.
func TestReadingAnewForgets(t *testing.T) {
	var c hivev1.ClusterClaim
	for _, raw := range []string{
		`{"metadata":{"name":"c"},"spec":{"clusterPoolName":"p","lifetime":8,"namespace":"a"}}`,
		`{"metadata":{"name":"c"},"spec":{"clusterPoolName":"p"}}`,
	} {
		if err := json.Unmarshal([]byte(raw), &c); err != nil {
			t.Fatal(err)
		}
	}
	if c.Unreadable != "" || c.Spec.Namespace != "" {
		t.Errorf("got %+v", c)
	}
}

func TestWhatIsNoObjectIsAnError(t *testing.T) {
	for _, raw := range []string{``, `{`, `[]`, `7`, `"x"`, `{"kind":"ClusterClaim","apiVersion":"hive.openshift.io/v1","metadata":`} {
		if err := new(hivev1.ClusterClaim).UnmarshalJSON([]byte(raw)); err == nil {
			t.Errorf("%s was read", raw)
		}
	}
}

// Half of a list of conditions, written back, would be refused.
func TestAStatusThatDoesNotFitIsLeftOut(t *testing.T) {
	var c hivev1.ClusterClaim
	if err := json.Unmarshal([]byte(`{"metadata":{"name":"c"},"spec":{"clusterPoolName":"p"},"status":{"conditions":[{"lastProbeTime":[],"type":"A"}],"position":3}}`), &c); err != nil {
		t.Fatal(err)
	}
	if c.Unreadable == "" || c.Spec.ClusterPoolName != "p" || !reflect.DeepEqual(c.Status, hivev1.ClusterClaimStatus{}) {
		t.Errorf("got %+v", c)
	}
}
