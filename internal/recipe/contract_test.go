package recipe

import (
	"fmt"
	"strings"
	"testing"
)

func TestAnswersOfPrepare(t *testing.T) {
	t.Parallel()
	got, err := ParsePrepared([]byte(`{"apiVersion":"recipe.hotspare.io/v1","infraID":"c-x7","metadata":{"region":"r"},"added":"later"}` + "\n"))
	if err != nil || got.InfraID != "c-x7" || string(got.Metadata) != `{"region":"r"}` {
		t.Errorf("got %+v, %v", got, err)
	}
	for want, answer := range map[string]string{
		"prepare printed nothing":              " \n",
		"which is not a valid JSON object":     "creating cluster…",
		"text after its JSON object":           `{"apiVersion":"recipe.hotspare.io/v1","infraID":"c"} done`,
		`apiVersion "v1"`:                      `{"apiVersion":"v1","infraID":"c"}`,
		`infraID ""`:                           `{"apiVersion":"recipe.hotspare.io/v1"}`,
		`infraID "../c"`:                       `{"apiVersion":"recipe.hotspare.io/v1","infraID":"../c"}`,
		`infraID "1c"`:                         `{"apiVersion":"recipe.hotspare.io/v1","infraID":"1c"}`,
		"use at most 63 lowercase letters":     fmt.Sprintf(`{"apiVersion":"recipe.hotspare.io/v1","infraID":%q}`, strings.Repeat("c", 64)),
		"metadata of 20003 bytes: use at most": fmt.Sprintf(`{"apiVersion":"recipe.hotspare.io/v1","infraID":"c","metadata":"%s"}`, strings.Repeat("m", 20001)),
	} {
		if _, err := ParsePrepared([]byte(answer)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: got %v, want %q", answer, err, want)
		} else if len(err.Error()) > 400 {
			t.Errorf("%q: the error has %d bytes", want, len(err.Error()))
		}
	}
}

func TestAnswersOfObserve(t *testing.T) {
	t.Parallel()
	observe := func(machines string) []byte {
		return []byte(`{"apiVersion":"recipe.hotspare.io/v1","machines":[` + machines + `]}`)
	}
	got, err := ParseObservation(observe(`{"name":"w","state":"Failed"},{"name":"m","controlPlane":true,"state":"Running"}`))
	if err != nil || got.String() != "m Running, w Failed" || !got[0].ControlPlane || got[1].Reason != "the recipe reports no reason" {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err = ParseObservation(observe(`{"name":"a","state":"Running","node":false},{"name":"b","state":"Running","node":true},{"name":"c","state":"Running"}`))
	if err != nil || !got[0].NoNode || got[1].NoNode || got[2].NoNode || !got.ExpectNodes() || got[:1].ExpectNodes() {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := ParseObservation(observe("")); err != nil || len(got) != 0 {
		t.Errorf("no machines: got %v, %v", got, err)
	}
	for want, machines := range map[string]string{
		`machine "m" in state "running": use one of Running`: `{"name":"m","state":"running"}`,
		`machine 0 with name ""`:                             `{"state":"Running"}`,
		`machine "m" twice`:                                  `{"name":"m","state":"Running"},{"name":"m","state":"Stopped"}`,
		"a cluster has at most 5000":                         strings.Repeat(`{"name":"m","state":"Running"},`, 5000) + `{}`,
	} {
		if _, err := ParseObservation(observe(machines)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v", machines, err)
		}
	}
}
