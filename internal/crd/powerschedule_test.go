package crd_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/crd"
)

// Tests the schema of PowerSchedule with bad values, and that whatever it accepts can be decoded: a
// stored object that cannot be decoded would hide all others from the controller.
func TestPowerSchedulesWithBadInput(t *testing.T) {
	s, err := crd.LoadSchema("PowerSchedule")
	if err != nil {
		t.Fatal(err)
	}
	const window = `"windows":[{"hibernate":"0 19 * * mon-fri","resume":"0 8 * * 1-5","timeZone":"America/Argentina/Buenos_Aires"}]`
	const cron = " is not a cron expression: write minute, hour, day of month, month and day of week, such as 0 19 * * mon-fri"
	for name, tc := range map[string]struct{ spec, want string }{
		"all is well":               {`{"claimSelector":{},` + window + `}`, ""},
		"no selector":               {`{` + window + `}`, "set exactly one of clusterSelector and claimSelector; {} selects all"},
		"two selectors":             {`{"claimSelector":{},"clusterSelector":{},` + window + `}`, "set exactly one of clusterSelector and claimSelector; {} selects all"},
		"claims abroad":             {`{"claimSelector":{},"namespaceSelector":{},` + window + `}`, "namespaceSelector is only valid with clusterSelector"},
		"clusters abroad":           {`{"clusterSelector":{"matchLabels":{"a":"b"}},"namespaceSelector":{},` + window + `}`, ""},
		"no windows":                {`{"claimSelector":{},"windows":[]}`, "spec.windows in body should have at least 1 items"},
		"windows left out":          {`{"claimSelector":{}}`, "spec.windows: Required value"},
		"a window of nothing":       {`{"claimSelector":{},"windows":[{}]}`, "a window needs hibernate, resume or both"},
		"a window that only wakes":  {`{"claimSelector":{},"windows":[{"resume":"0 8 * * *"}]}`, ""},
		"an empty expression":       {`{"claimSelector":{},"windows":[{"hibernate":""}]}`, `""` + cron},
		"four fields":               {`{"claimSelector":{},"windows":[{"hibernate":"0 19 * *"}]}`, `"0 19 * *"` + cron},
		"six fields":                {`{"claimSelector":{},"windows":[{"hibernate":"0 0 19 * * *"}]}`, `"0 0 19 * * *"` + cron},
		"a nickname":                {`{"claimSelector":{},"windows":[{"hibernate":"@daily"}]}`, `"@daily"` + cron},
		"a zone in the expression":  {`{"claimSelector":{},"windows":[{"hibernate":"TZ=UTC 0 19 * * *"}]}`, cron},
		"a number":                  {`{"claimSelector":{},"windows":[{"hibernate":19}]}`, "must be of type string"},
		"an expression without end": {`{"claimSelector":{},"windows":[{"hibernate":"` + strings.Repeat("1,", 70) + `2 * * * *"}]}`, "Too long"},
		"the machine's zone":        {`{"claimSelector":{},"windows":[{"hibernate":"0 1 * * *","timeZone":"Local"}]}`, `"Local" is not a time zone: use a name of the IANA database, such as UTC or Europe/Berlin`},
		"a path for a zone":         {`{"claimSelector":{},"windows":[{"hibernate":"0 1 * * *","timeZone":"../passwd"}]}`, `"../passwd" is not a time zone`},
		"a day that is none":        {`{"claimSelector":{},"skipUntil":"2026-02-30T00:00:00Z",` + window + `}`, "skipUntil"},
		"a time without zone":       {`{"claimSelector":{},"skipUntil":"2026-02-20T00:00:00",` + window + `}`, "skipUntil"},
		"tomorrow":                  {`{"claimSelector":{},"skipUntil":"tomorrow",` + window + `}`, "skipUntil"},
		"a time with an offset":     {`{"claimSelector":{},"skipUntil":"2026-02-20T00:00:00+05:45",` + window + `}`, ""},
		"nulls":                     {`{"claimSelector":{},"clusterSelector":null,"skipUntil":null,` + window + `}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			raw := fmt.Sprintf(`{"apiVersion":"hotspare.io/v1alpha1","kind":"PowerSchedule","metadata":{"name":"n","namespace":"d"},"spec":%s}`, tc.spec)
			if err := utiljson.Unmarshal([]byte(raw), &object); err != nil {
				t.Fatal(err)
			}
			v, err := s.Admit(t.Context(), object)
			if err != nil {
				t.Fatal(err)
			}
			said := ""
			if len(v.Faults) > 0 {
				said = v.Faults.ToAggregate().Error()
			}
			if !strings.Contains(said, tc.want) || (said == "") != (tc.want == "") {
				t.Errorf("got %q, want %q", said, tc.want)
			}
			if said != "" {
				return
			}
			stored, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			var read v1alpha1.PowerSchedule
			if err := json.Unmarshal(stored, &read); err != nil {
				t.Errorf("it was accepted and cannot be read: %v", err)
			}
			if w := read.Spec.Windows[0]; w.TimeZone == "" {
				t.Error("it has no time zone")
			}
		})
	}
}
