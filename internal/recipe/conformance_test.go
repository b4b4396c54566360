package recipe

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/cloud"
)

// runSuite runs the suite on a recipe and returns the checks that have failed, and what is left over.
func runSuite(t *testing.T, p programs, seed uint64, patience time.Duration) (failed, left []string, all []Check) {
	t.Helper()
	world := t.TempDir()
	s := &Suite{
		Recipe: p.load(t), With: map[string]string{"world": world}, Dir: t.TempDir(),
		Random: rand.New(rand.NewPCG(seed, 0)), Pause: time.Millisecond, Patience: patience, KillWithin: 100 * time.Millisecond,
	}
	all = s.Run(t.Context())
	for _, c := range all {
		if c.State == CheckFailed {
			failed = append(failed, c.Name)
		}
	}
	entries, err := os.ReadDir(world)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	return failed, left, all
}

func TestAGoodRecipePassesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	failed, left, all := runSuite(t, directories, seed, time.Minute)
	if len(failed) > 0 || len(left) > 0 || len(all) != 13 {
		t.Errorf("seed %d: left %v\n%s", seed, left, Table(all))
	}
	minimal := directories.with(programs{"prepare": "", "observe": "", "stop": "", "start": ""})
	failed, left, all = runSuite(t, minimal, seed, time.Minute)
	if len(failed) > 0 || len(left) > 0 {
		t.Errorf("seed %d, create and destroy alone: left %v\n%s", seed, left, Table(all))
	}
	skipped := slices.DeleteFunc(slices.Clone(all), func(c Check) bool { return c.State != CheckSkipped })
	if len(skipped) != 2 {
		t.Errorf("skipped are %v", skipped)
	}
}

func TestEachFaultOfARecipeIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change programs
		want   string
		detail string
	}{
		"prepare creates": {
			programs{"prepare": directories["prepare"] + "mkdir -p \"$RECIPE_WORLD/$id/m\"; echo Running >\"$RECIPE_WORLD/$id/m/state\"\n"},
			"prepare creates nothing", "prepare must not create machines",
		},
		"prepare prints messages": {programs{"prepare": "#!/bin/sh\necho hello\n"}, "prepare creates nothing", "print messages to standard error"},
		"all clusters share one name": {
			programs{"prepare": "#!/bin/sh\nattempt=$(sed -n 's/.*\"attempt\": *\\([0-9]*\\).*/\\1/p' input.json)\necho \"{\\\"apiVersion\\\":\\\"recipe.hotspare.io/v1\\\",\\\"infraID\\\":\\\"same-$attempt\\\"}\"\n"},
			"two clusters are independent", "both clusters have infraID same-0",
		},
		"all attempts share one name": {
			programs{"prepare": "#!/bin/sh\necho \"{\\\"apiVersion\\\":\\\"recipe.hotspare.io/v1\\\",\\\"infraID\\\":\\\"$HOTSPARE_NAME-x\\\"}\"\n"},
			"prepare creates nothing", "for two attempts to create a cluster: derive it from name, uid and attempt",
		},
		"create leaves no kubeconfig": {
			programs{"create": directories["create"] + "rm \"$KUBECONFIG\"\n"},
			"create creates a cluster with a kubeconfig", "wrote no file kubeconfig to $HOTSPARE_DIR",
		},
		"create leaves something else": {
			programs{"create": directories["create"] + "echo oops >\"$KUBECONFIG\"\n"},
			"create creates a cluster with a kubeconfig", "is not a kubeconfig with a cluster",
		},
		"create makes more each time": {
			programs{"create": strings.Replace(directories["create"], "master-0", "master-$$", 1)},
			"a second create changes nothing", "after a second create",
		},
		"create is never done": {programs{"create": "#!/bin/sh\nexit 10\n"}, "create creates a cluster with a kubeconfig", "for create to succeed"},
		"stop does nothing":    {programs{"stop": "#!/bin/sh\n"}, "stop and start change all machines", "for all machines to be Stopped after stop; observe prints master-0 Running"},
		"start does nothing":   {programs{"start": "#!/bin/sh\n"}, "stop and start change all machines", "for all machines to be Running"},
		"destroy needs its state": {
			programs{
				"create":  directories["create"] + "echo \"$RECIPE_WORLD/$HOTSPARE_INFRA_ID\" >home\n",
				"destroy": "#!/bin/sh\n[ ! -e home ] || rm -rf \"$(cat home)\"\n",
			},
			"destroy needs no state folder", "destroy succeeded, but observe prints master-0 Running",
		},
		"destroy fails when nothing exists": {
			programs{"destroy": "#!/bin/sh -e\n[ -e \"$RECIPE_WORLD/$HOTSPARE_INFRA_ID\" ]\n" + directories["destroy"]},
			"destroy succeeds if nothing was created", "destroy exited with code 1",
		},
		"destroy destroys all": {
			programs{"destroy": "#!/bin/sh\nrm -rf \"${RECIPE_WORLD:?}\"/*\n"},
			"two clusters are independent", "no machines after the first one was destroyed",
		},
		"a program that it needs is missing": {
			programs{FileName: strings.Replace(directories[FileName], "[sh]", "[sh, no-such-program]", 1)},
			"the required programs are installed", "not in PATH: no-such-program: install",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed, _, all := runSuite(t, directories.with(c.change), 1, time.Second)
			i := slices.IndexFunc(all, func(k Check) bool { return k.Name == c.want })
			if !slices.Contains(failed, c.want) || !strings.Contains(all[i].Detail, c.detail) {
				t.Errorf("want %q to fail with %q:\n%s", c.want, c.detail, Table(all))
			}
		})
	}
}

func TestAFailedCreateSkipsTheChecksThatNeedACluster(t *testing.T) {
	t.Parallel()
	failed, left, all := runSuite(t, directories.with(programs{"create": "#!/bin/sh\nmkdir -p \"$RECIPE_WORLD/$HOTSPARE_INFRA_ID/master-0\"\nexit 1\n"}), 1, time.Second)
	if want := []string{createCheck, "destroy succeeds after create was killed"}; len(failed) == 0 || failed[0] != want[0] || len(failed) > 2 || len(left) > 0 || len(all) != len(suiteChecks) {
		t.Errorf("left %v, want no failures but %v:\n%s", left, want, Table(all))
	}
}

func TestTheSuiteStopsWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	world := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	s := &Suite{
		Recipe: directories.load(t), With: map[string]string{"world": world}, Dir: t.TempDir(), Random: rand.New(rand.NewPCG(1, 0)), Pause: time.Millisecond, Patience: time.Minute,
		Begin: func(name string) {
			if name == createCheck {
				time.AfterFunc(10*time.Millisecond, cancel)
			}
		},
	}
	all := s.Run(ctx)
	if entries, err := os.ReadDir(world); err != nil || len(entries) > 0 || len(all) > 6 {
		t.Errorf("left %v, %v\n%s", entries, err, Table(all))
	}
}

// runWithUse runs one check of a suite whose clusters are usable as isUsable says; sinceStop is the number of
// times that a cluster was asked since its machines stopped, and 0 while they run.
func runWithUse(t *testing.T, check string, patience time.Duration, isUsable func(sinceStop int) error) Check {
	t.Helper()
	world, asked := t.TempDir(), 0
	s := &Suite{
		Recipe: directories.load(t), With: map[string]string{"world": world}, Dir: t.TempDir(),
		Random: rand.New(rand.NewPCG(1, 0)), Pause: time.Millisecond, Patience: patience, KillWithin: 100 * time.Millisecond,
		CheckUsable: func(ctx context.Context, c Cluster, _ []byte, _ bool) error {
			ms, _, err := c.Observe(ctx)
			if err != nil {
				t.Error(err)
			}
			if asked++; ms.AllIn(cloud.Running) {
				asked = 0
			}
			return isUsable(asked)
		},
	}
	s.took, s.with = map[Verb]time.Duration{}, map[string]string{"world": world, "workers": "2"}
	i := slices.IndexFunc(suiteChecks, func(c suiteCheck) bool { return c.name == check })
	return s.runCheck(t.Context(), suiteChecks[i])
}

func TestAStoppedClusterMustNotBeUsable(t *testing.T) {
	t.Parallel()
	silent := errors.New("its API does not answer")
	for name, c := range map[string]struct {
		isUsable func(sinceStop int) error
		failure  string
	}{
		"the API ends with the machines": {func(n int) error {
			if n > 0 {
				return silent
			}
			return nil
		}, ""},
		"the API ends a little later": {func(n int) error {
			if n > 2 {
				return silent
			}
			return nil
		}, ""},
		"the API goes on":            {func(int) error { return nil }, "stop has succeeded, and the API of the cluster still answers 1ms later"},
		"the API does not come back": {func(int) error { return silent }, "start has succeeded, and no pool could use the cluster 1ms later: its API does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patience := time.Minute
			if c.failure != "" {
				patience = time.Millisecond
			}
			check := runWithUse(t, "stop and start change all machines", patience, c.isUsable)
			if (check.State == CheckFailed) != (c.failure != "") || !strings.Contains(check.Detail, c.failure) {
				t.Errorf("%s: %s", check.State, check.Detail)
			}
		})
	}
}

func TestACreatedClusterThatNoPoolCouldUseIsAFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failures int // of CheckUsable, before it succeeds
		patience time.Duration
		want     CheckState
	}{
		"it is usable at once":  {0, time.Minute, CheckPassed},
		"it is usable later":    {3, time.Minute, CheckPassed},
		"it is never usable":    {1 << 30, time.Millisecond, CheckFailed},
		"nobody has to test it": {-1, time.Minute, CheckPassed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &Suite{
				Recipe: directories.load(t), With: map[string]string{"world": t.TempDir()}, Dir: t.TempDir(),
				Random: rand.New(rand.NewPCG(1, 0)), Pause: time.Millisecond, Patience: c.patience, KillWithin: 100 * time.Millisecond,
			}
			expected := false
			if c.failures >= 0 {
				s.CheckUsable = func(_ context.Context, _ Cluster, kubeconfig []byte, expectNodes bool) error {
					if expected = expectNodes; len(kubeconfig) == 0 {
						t.Error("it has no kubeconfig")
					}
					if c.failures--; c.failures >= 0 {
						return errors.New("its API does not answer")
					}
					return nil
				}
			}
			s.took, s.with = map[Verb]time.Duration{}, map[string]string{"world": s.With["world"], "workers": "2"}
			i := slices.IndexFunc(suiteChecks, func(c suiteCheck) bool { return c.name == createCheck })
			check := s.runCheck(t.Context(), suiteChecks[i])
			if check.State != c.want || (c.want == CheckFailed) != strings.Contains(check.Detail, "no pool could use the cluster") {
				t.Errorf("%s: %s", check.State, check.Detail)
			}
			if s.CheckUsable != nil && !expected {
				t.Error("no nodes are expected of machines that are nodes")
			}
		})
	}
}
