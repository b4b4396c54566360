package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"hotspare.io/hotspare/internal/up"
	"hotspare.io/hotspare/internal/up/containersrecord"
)

func TestAVariableReplacesTheDefaultOfAFlag(t *testing.T) {
	for name, c := range map[string]struct {
		variable string
		args     []string
		want     bool
	}{
		"no variable":           {"", nil, true},
		"a variable":            {"false", nil, false},
		"a flag takes priority": {"false", []string{"--containers"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(containersVariable, c.variable)
			var got bool
			flags := pflag.NewFlagSet("up", pflag.ContinueOnError)
			flags.BoolVar(&got, "containers", true, "")
			if err := flags.Parse(c.args); err != nil {
				t.Fatal(err)
			}
			if err := readContainersVariable(flags); err != nil || got != c.want {
				t.Errorf("got %t, %v", got, err)
			}
		})
	}
}

func TestABadVariableIsNamed(t *testing.T) {
	t.Setenv(containersVariable, "maybe")
	flags := pflag.NewFlagSet("up", pflag.ContinueOnError)
	flags.Bool("containers", true, "")
	if err := readContainersVariable(flags); err == nil || !strings.Contains(err.Error(), `$HOTSPARE_CONTAINERS: invalid argument "maybe"`) {
		t.Errorf("the error is %v", err)
	}
}

func TestTheCommandThatStopsAHubNamesItsDataFolder(t *testing.T) {
	t.Setenv("HOTSPARE_DATA_DIR", "/srv/hub")
	for dir, want := range map[string]string{"/srv/hub": "hotspare down", "/srv/other": "hotspare down --data-dir /srv/other"} {
		if got := formatStopCommand("hotspare", dir); got != want {
			t.Errorf("data folder %s: %q, want %q", dir, got, want)
		}
	}
}

func TestUpSaysWhetherPodsAreSimulatedAndWhy(t *testing.T) {
	dir := t.TempDir()
	for obstacle, want := range map[string]string{
		"":                            "containers: real pods\n",
		"runc is missing: install it": "containers: simulated: runc is missing: install it\n",
	} {
		if err := (containersrecord.Record{Obstacle: obstacle}).Write(dir); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		printNextCommands(&out, up.Options{Dir: dir}, "Next:", true)
		if !strings.Contains(out.String(), want) {
			t.Errorf("obstacle %q: it prints:\n%s", obstacle, &out)
		}
	}
}
