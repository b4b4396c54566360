package up

import (
	"context"
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/cloud"
	cloudexec "hotspare.io/hotspare/internal/cloud/exec"
	"hotspare.io/hotspare/internal/cloud/local"
	installexec "hotspare.io/hotspare/internal/install/exec"
	"hotspare.io/hotspare/internal/recipe/runner"
	"hotspare.io/hotspare/recipes"
)

// recipePlatform is the platform exec, whose programs run as processes of this computer.
type recipePlatform struct {
	catalog  runner.Catalog
	runner   *runner.Processes
	executor *installexec.Executor
	actuator *cloudexec.Actuator
}

// recipeFolder is the folder of the clusters of recipes, in the data folder dir.
func recipeFolder(dir string) runner.Folder {
	return runner.Folder(filepath.Join(dir, runner.FolderName))
}

// CountRecipeClusters returns how many clusters recipes have created, or begun to create, and not
// destroyed. Their processes do not end with hotspare.
func CountRecipeClusters(dir string) (int, error) {
	return recipeFolder(dir).CountClusters()
}

// startRecipes prepares the platform exec. It works until ctx ends; stop waits for its end.
func (o Options) startRecipes(ctx context.Context, secrets cloud.Secrets, onChange func(types.NamespacedName)) (*recipePlatform, error) {
	p := &recipePlatform{catalog: runner.Catalog{Dir: o.Recipes}}
	if o.Recipes == "" {
		p.catalog.Dir = filepath.Join(o.Dir, "recipes")
		if err := recipes.WriteTo(p.catalog.Dir); err != nil {
			return nil, fmt.Errorf("unpacking the shipped recipes: %w", err)
		}
	}
	folder := recipeFolder(o.Dir)
	var err error
	if p.runner, err = runner.NewProcesses(folder, runner.Options{}); err != nil {
		return nil, err
	}
	p.executor = installexec.New(ctx, installexec.Options{
		Runner: p.runner, Store: folder, Catalog: p.catalog, Secrets: secrets, Clock: clock.RealClock{}, OnChange: onChange,
		Measure: func() (memory, disk int64, err error) {
			r, err := local.MeasureResources(o.Dir)
			return r.Memory, r.Disk, err
		},
	})
	p.actuator = cloudexec.New(ctx, cloudexec.Options{Runner: p.runner, Catalog: p.catalog, Secrets: secrets, Clock: clock.RealClock{}})
	return p, nil
}

// stop waits, after the context of startRecipes has ended, until no program runs.
func (p *recipePlatform) stop() {
	p.executor.Wait()
	p.actuator.Wait()
	_ = p.runner.Close() // the next process removes what is left
}
