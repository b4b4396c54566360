package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"hotspare.io/hotspare/internal/up"
)

func TestWhichFlagsAreUsedAgainAndKept(t *testing.T) {
	for name, c := range map[string]struct {
		kept       up.Flags
		variable   string
		args       []string
		want       string // the flags that are used again
		keeps      string // for the next start
		containers bool
	}{
		"none":                             {up.Flags{}, "", nil, "", "", true},
		"given ones":                       {up.Flags{}, "", []string{"--recipes=/a", "--containers=false"}, "", "--containers=false --recipes=/a", false},
		"kept ones":                        {up.Flags{"containers": {"false"}}, "", nil, "--containers=false", "--containers=false", false},
		"a given one takes priority":       {up.Flags{"recipes": {"/a"}}, "", []string{"--recipes=/b"}, "", "--recipes=/b", true},
		"a default resets":                 {up.Flags{"containers": {"false"}, "recipes": {"/a"}}, "", []string{"--containers", "--recipes="}, "", "", true},
		"a variable takes priority":        {up.Flags{"containers": {"true"}}, "false", nil, "", "--containers=true", false},
		"a variable is not kept":           {up.Flags{}, "false", nil, "", "", false},
		"a list":                           {up.Flags{"insecure-registries": {"a:1", "b:1"}}, "", nil, "--insecure-registries=a:1 --insecure-registries=b:1", "--insecure-registries=a:1 --insecure-registries=b:1", true},
		"a list that is reset":             {up.Flags{"insecure-registries": {"a:1", "b:1"}}, "", []string{"--insecure-registries="}, "", "", true},
		"those that are not kept":          {up.Flags{}, "", []string{"--port=1", "--hub-only"}, "", "", true},
		"one that another version has":     {up.Flags{"future": {"x"}}, "", nil, "", "", true},
		"one that may not be kept":         {up.Flags{"hub-only": {"true"}}, "", nil, "", "", true},
		"a given one beside a kept one":    {up.Flags{"recipes": {"/a"}}, "", []string{"--installer=/b"}, "--recipes=/a", "--installer=/b --recipes=/a", true},
		"a given list beside a kept value": {up.Flags{"recipes": {"/a"}}, "", []string{"--insecure-registries=a:1,b:1"}, "--recipes=/a", "--insecure-registries=a:1 --insecure-registries=b:1 --recipes=/a", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(containersVariable, c.variable)
			set := upCommand().Flags()
			if err := set.Parse(c.args); err != nil {
				t.Fatal(err)
			}
			given := listGiven(set)
			if err := readContainersVariable(set); err != nil {
				t.Fatal(err)
			}
			applied, err := applyKept(set, c.kept)
			if err != nil {
				t.Fatal(err)
			}
			keeps := planKept(set, c.kept, given)
			if diff := cmp.Diff([]string{c.want, c.keeps}, []string{applied.String(), keeps.String()}); diff != "" {
				t.Error(diff)
			}
			if got, err := set.GetBool("containers"); err != nil || got != c.containers {
				t.Errorf("containers is %t, %v", got, err)
			}
		})
	}
}

func TestAHubInTheBackgroundGetsTheGivenFlags(t *testing.T) {
	set := upCommand().Flags()
	args := []string{"--detach", "--recipes=/my recipes", "--port=1", "--hub-only", "--metrics-address=0", "--insecure-registries=a:1,b:1", "--containers=false"}
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	want := []string{"--containers=false", "--hub-only=true", "--insecure-registries=a:1", "--insecure-registries=b:1", "--metrics-address=0", "--port=1", "--recipes=/my recipes"}
	if diff := cmp.Diff(want, readFlags(set, listGiven(set)).Arguments()); diff != "" {
		t.Error(diff)
	}
}

func TestTheKeptFlagsExist(t *testing.T) {
	set := upCommand().Flags()
	known := map[string]bool{"detach": true, "until-eof": true}
	for _, name := range append(append([]string{}, keptFlags...), passedFlags...) {
		known[name] = true
		if set.Lookup(name) == nil {
			t.Errorf("hotspare up has no flag %s", name)
		}
	}
	set.VisitAll(func(f *pflag.Flag) {
		if !known[f.Name] {
			t.Errorf("flag --%s is neither kept nor passed to a hub in the background: add it to keptFlags or passedFlags", f.Name)
		}
	})
}

func TestThePrintedKeptFlagsShowHowToResetOne(t *testing.T) {
	for want, kept := range map[string]up.Flags{
		"": {},
		"using the flags of an earlier start: --containers=false --recipes=/a\n  (to reset a flag, give it its default, as in --containers=true)\n":    {"recipes": {"/a"}, "containers": {"false"}},
		"using the flags of an earlier start: --insecure-registries=a:1\n  (to reset a flag, give it its default, as in --insecure-registries=\"\")\n": {"insecure-registries": {"a:1"}},
		"using the flags of an earlier start: --recipes=/a\n  (to reset a flag, give it its default, as in --recipes=\"\")\n":                          {"recipes": {"/a"}},
	} {
		var out strings.Builder
		printKept(&out, upCommand().Flags(), kept)
		if got := out.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
