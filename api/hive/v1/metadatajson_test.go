package v1

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMetadataJSONIsBase64AsHiveHasIt(t *testing.T) {
	const text = `{"infraID":"a-b"}`
	for name, c := range map[string]struct {
		stored string
		want   MetadataJSON
	}{
		"base64":                         {`"eyJpbmZyYUlEIjoiYS1iIn0="`, MetadataJSON{Raw: []byte(text)}},
		"the text of an earlier version": {`"{\"infraID\":\"a-b\"}"`, MetadataJSON{Raw: []byte(text), Plain: true}},
		"nothing":                        {`""`, MetadataJSON{Raw: []byte{}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got MetadataJSON
			if err := json.Unmarshal([]byte(c.stored), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			raw, err := json.Marshal(got)
			if err != nil || string(raw) != c.stored {
				t.Errorf("it is written as %s, %v, want it as it was", raw, err)
			}
		})
	}
	for _, bad := range []string{`"not base64"`, `7`} {
		if err := json.Unmarshal([]byte(bad), &MetadataJSON{}); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}
