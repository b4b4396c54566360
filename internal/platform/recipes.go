package platform

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cloudexec "hotspare.io/hotspare/internal/cloud/exec"
	"hotspare.io/hotspare/internal/install/exec"
	"hotspare.io/hotspare/internal/install/job"
	"hotspare.io/hotspare/internal/recipe/runner/jobs"
)

// execPlatform is the key of the platform whose clusters recipes create.
const execPlatform = "exec"

const (
	// observeAge and settledAge bound how often the program observe of a cluster runs: each run is a Job.
	observeAge = 15 * time.Second
	settledAge = 10 * time.Minute
)

// Recipes is the platform exec, whose programs run as Jobs of the hub.
type Recipes struct {
	Catalog  *jobs.Catalog
	Executor *exec.Executor
}

// AddRecipes adds the platform exec to a Set, unless it is not among the enabled ones. The programs run
// until ctx ends; their Jobs survive that. onChange is called when a program has ended. It returns nil if
// the platform is not enabled.
func (s Set) AddRecipes(ctx context.Context, cfg *rest.Config, o Options, onChange func(types.NamespacedName)) (*Recipes, error) {
	if o.Jobs == nil || len(o.Only) > 0 && !slices.Contains(o.Only, execPlatform) {
		return nil, nil
	}
	c, err := client.New(cfg, client.Options{Scheme: JobScheme()})
	if err != nil {
		return nil, fmt.Errorf("creating a client for the Jobs of recipes: %w", err)
	}
	run, store, catalog := jobs.New(c, recipeOptions(*o.Jobs))
	executor := exec.New(ctx, exec.Options{Runner: run, Store: store, Catalog: catalog, Secrets: s.Secrets, Clock: clock.RealClock{}, OnChange: onChange})
	s.Executors[execPlatform] = executor
	s.Actuators[execPlatform] = cloudexec.New(ctx, cloudexec.Options{
		Runner: run, Catalog: catalog, Secrets: s.Secrets, Clock: clock.RealClock{}, FreshAge: observeAge, SettledAge: settledAge,
	})
	return &Recipes{Catalog: catalog, Executor: executor}, nil
}

func recipeOptions(o job.Options) jobs.Options {
	return jobs.Options{Image: o.Image, Program: o.Program, RunAsUser: o.RunAsUser}
}
