package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/recipetest"
	"hotspare.io/hotspare/internal/recipe/runner"
)

func platformOf(p hivev1.ExecPlatform) hivev1.Platform { return hivev1.Platform{Exec: &p} }

func TestMissingRequirementsNameFieldValueAndRemedy(t *testing.T) {
	w := recipetest.New(t)
	c := runner.Catalog{Dir: w.Catalog}
	for name, tt := range map[string]struct {
		platform hivev1.ExecPlatform
		want     []string
	}{
		"nothing":                 {hivev1.ExecPlatform{Recipe: recipetest.Name}, nil},
		"an unknown recipe":       {hivev1.ExecPlatform{Recipe: "k3x"}, []string{"spec.platform.exec.recipe", `"k3x"`, "use standin"}},
		"a folder above":          {hivev1.ExecPlatform{Recipe: ".."}, []string{"spec.platform.exec.recipe", `".."`}},
		"an unknown parameter":    {hivev1.ExecPlatform{Recipe: recipetest.Name, With: map[string]hivev1.ExecParameter{"size": "1"}}, []string{"with.size", "workers"}},
		"a value that is refused": {hivev1.ExecPlatform{Recipe: recipetest.Name, With: map[string]hivev1.ExecParameter{"workers": "x"}}, []string{"with.workers", `"x"`}},
		"a time limit that is refused": {
			hivev1.ExecPlatform{Recipe: recipetest.Name, Timeouts: hivev1.ExecTimeouts{Create: "10ms"}},
			[]string{"spec.platform.exec.timeouts.create", `"10ms"`, "at least 1s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.MissingRequirements(platformOf(tt.platform))
			if (len(got) == 0) != (tt.want == nil) {
				t.Fatalf("got %q", got)
			}
			for _, want := range tt.want {
				if !strings.Contains(strings.Join(got, "; "), want) {
					t.Errorf("%q does not name %s", got, want)
				}
			}
		})
	}
}

func TestAProgramThatIsMissingIsNamed(t *testing.T) {
	w := recipetest.New(t)
	path := filepath.Join(w.Catalog, recipetest.Name, recipe.FileName)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(raw, "needs: {programs: [sh, no-such-program]}\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	got := runner.Catalog{Dir: w.Catalog}.MissingRequirements(platformOf(hivev1.ExecPlatform{Recipe: recipetest.Name}))
	if len(got) != 1 || !strings.Contains(got[0], "no-such-program") || !strings.Contains(got[0], "PATH") {
		t.Errorf("got %q", got)
	}
}

func TestTheTimeLimitsOfThePlatformReplaceThoseOfTheRecipe(t *testing.T) {
	w := recipetest.New(t)
	r, err := runner.Catalog{Dir: w.Catalog}.Find(&hivev1.ExecPlatform{Recipe: recipetest.Name, Timeouts: hivev1.ExecTimeouts{Create: "1h"}})
	if err != nil {
		t.Fatal(err)
	}
	if create, stop := r.Timeout(recipe.Create), r.Timeout(recipe.Stop); create != time.Hour || stop != 30*time.Second {
		t.Errorf("create may take %s and stop %s", create, stop)
	}
}

func TestTheContentVersionFollowsTheFiles(t *testing.T) {
	w := recipetest.New(t)
	c, p := runner.Catalog{Dir: w.Catalog}, platformOf(hivev1.ExecPlatform{Recipe: recipetest.Name})
	first := c.ContentVersion(p)
	if first != c.ContentVersion(p) || !strings.HasPrefix(first, "1-") {
		t.Errorf("the version is %q", first)
	}
	w.WriteProgram(t, "stop", "#!/bin/sh\n")
	second := c.ContentVersion(p)
	if second == first {
		t.Error("another program has the same version")
	}
	if err := os.Chmod(filepath.Join(w.Catalog, recipetest.Name, "stop"), 0o700); err != nil {
		t.Fatal(err)
	}
	if c.ContentVersion(p) == second {
		t.Error("another permission has the same version")
	}
	if got := c.ContentVersion(platformOf(hivev1.ExecPlatform{Recipe: "k3x"})); got != "" {
		t.Errorf("a recipe that does not exist has version %q", got)
	}
}

func TestMetadataOfAnotherPlatformIsRejected(t *testing.T) {
	for _, raw := range []string{``, `{}`, `{"infraID":"a"}`, `{"infraID":"a","aws":{}}`, `{"exec":{"recipe":"a"}}`} {
		if _, err := runner.ParseMetadata([]byte(raw)); fault.KindOf(err) != fault.Denied {
			t.Errorf("%q: %v, want fault.Denied", raw, err)
		}
	}
}
