package containersrecord

import (
	"os"
	"testing"
)

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	dir := t.TempDir()
	for _, want := range []Record{{}, {Obstacle: `runc is missing: run "apt-get install runc"`}, {}} {
		if err := want.Write(dir); err != nil {
			t.Fatal(err)
		}
		if got, found := Read(dir); !found || got != want {
			t.Errorf("got %+v, %t, want %+v", got, found, want)
		}
	}
	for range 2 { // the second time there is nothing left
		if err := Remove(dir); err != nil {
			t.Fatal(err)
		}
	}
	if got, found := Read(dir); found {
		t.Errorf("it was removed: %+v", got)
	}
}

func TestADamagedRecordIsNone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(Path(dir), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, found := Read(dir); found {
		t.Errorf("got %+v", got)
	}
}

func TestARecordIsASentenceForUsers(t *testing.T) {
	for obstacle, want := range map[string]string{
		"": "real pods",
		`runc is missing: run "apt-get install runc"`: `simulated: runc is missing: run "apt-get install runc"`,
	} {
		if got := (Record{Obstacle: obstacle}).String(); got != want {
			t.Errorf("%q: got %q, want %q", obstacle, got, want)
		}
	}
}
