package up

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFlagsAreKeptForTheNextStart(t *testing.T) {
	dir := t.TempDir()
	if got, err := ReadFlags(dir); err != nil || len(got) != 0 {
		t.Errorf("a new folder has %v, %v", got, err)
	}
	for _, flags := range []Flags{
		{"recipes": {"/srv/my recipes"}, "insecure-registries": {"a:1", "b:2"}, "installer": {}},
		{"containers": {"false"}},
		{},
	} {
		if err := flags.keep(dir); err != nil {
			t.Fatal(err)
		}
		got, err := ReadFlags(dir)
		if diff := cmp.Diff(flags, got); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	}
}

func TestFlagsAreWrittenAsOneTypesThem(t *testing.T) {
	flags := Flags{"recipes": {"/srv/it's mine"}, "insecure-registries": {"a:1", "b:2"}, "installer": nil}
	const want = `--insecure-registries=a:1 --insecure-registries=b:2 --installer= '--recipes=/srv/it'\''s mine'`
	if got := flags.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestADamagedFileOfFlagsIsNamedWithTheRemedy(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(flagsPath(dir), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFlags(dir); err == nil || !strings.Contains(err.Error(), flagsPath(dir)) || !strings.Contains(err.Error(), "delete the file") {
		t.Errorf("the error is %v", err)
	}
	if err := (Flags{"recipes": {"/x"}}).keep(dir); err != nil {
		t.Error(err)
	}
}
