package state

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// fullState returns a State with every field set, each to another value, so that fields that share
// a key or are forgotten by Encode show.
func fullState(t *testing.T) State {
	t.Helper()
	var s State
	v := reflect.ValueOf(&s).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("value of " + name)
		case reflect.Slice:
			f.SetBytes([]byte("content of " + name))
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int:
			f.SetInt(MaxParts)
		default:
			t.Fatalf("field %s has kind %s: teach this test and Encode", name, f.Kind())
		}
	}
	return s
}

func TestEveryFieldIsStored(t *testing.T) {
	want := fullState(t)
	got, err := Decode(want.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if n, fields := len(want.Encode()), reflect.TypeFor[State]().NumField(); n != fields {
		t.Errorf("%d fields have %d keys: two share one", fields, n)
	}
}

func TestAnEmptyStateTakesNoSpace(t *testing.T) {
	if data := (State{}).Encode(); len(data) != 0 {
		t.Errorf("got %v", data)
	}
	if s, err := Decode(nil); err != nil || !reflect.DeepEqual(s, State{}) {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestImpossibleNumbersOfPartsAreRejected(t *testing.T) {
	for _, raw := range []string{"five", "-1", "5", "1e3", "99999999999999999999"} {
		if _, err := Decode(map[string][]byte{keyParts: []byte(raw)}); err == nil || !strings.Contains(err.Error(), raw) {
			t.Errorf("%q: got %v", raw, err)
		}
	}
}

func TestTheEndOfAnAttemptRemovesItsSecrets(t *testing.T) {
	for _, end := range []func(*State){
		func(s *State) { s.MarkEnded(Succeeded) },
		func(s *State) { s.MarkEnded(Abandoned) },
		func(s *State) { s.MarkFailed(ReasonTimeout, "the end of the log") },
	} {
		s := fullState(t)
		end(&s)
		if s.InstallConfig != nil || s.ManifestPatches != nil || s.Holder != "" || s.Heartbeat != "" {
			t.Errorf("%s keeps %q, %q, %q, %q", s.Phase, s.InstallConfig, s.ManifestPatches, s.Holder, s.Heartbeat)
		}
		if !s.Phase.IsFinal() || len(s.Metadata) == 0 {
			t.Errorf("%s is not final, or lost its metadata: nothing could destroy the cluster", s.Phase)
		}
	}
	for _, p := range []Phase{New, Prepared, Creating} {
		if p.IsFinal() {
			t.Errorf("%q is final", p)
		}
	}
}

// A Secret that an older version wrote must be readable after an upgrade: attempts run on meanwhile.
func TestKeysStayTheSame(t *testing.T) {
	want := []string{
		"apiURL", "beat", "bootstrapped", "cliImage", "digest", "holder", "install-config.yaml", "installerImage", "kubeconfig", "log",
		"manifest-patches.json", "metadata.json", "parts", "password", "phase", "reason", "told", "version", "webConsoleURL",
	}
	if got := slices.Sorted(maps.Keys(fullState(t).Encode())); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
