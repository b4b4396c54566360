package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/recipe"
)

// Catalog finds recipes below a folder. It reads them on every call, so that a user can add or
// change a recipe while hotspare runs.
type Catalog struct {
	// Dir contains one folder for each recipe.
	Dir string
}

var _ Recipes = Catalog{}

// FindRecipe returns the recipe that a platform names, as it is now.
func (c Catalog) FindRecipe(_ context.Context, l Lookup) (*recipe.Recipe, error) {
	return c.Find(l.Platform)
}

// Find returns the recipe that a platform names, with the platform's time limits. The error is
// fault.Denied, and names the field, the value and the remedy.
func (c Catalog) Find(p *hivev1.ExecPlatform) (*recipe.Recipe, error) {
	limits, err := ReadTimeouts(p.Timeouts)
	if err != nil {
		return nil, err
	}
	r, err := c.load(p.Recipe)
	if err != nil {
		return nil, err
	}
	return r.WithTimeouts(limits), nil
}

func (c Catalog) load(name string) (*recipe.Recipe, error) {
	if name == "" || name != filepath.Base(name) || !filepath.IsLocal(name) {
		return nil, fault.NewDenied("spec.platform.exec.recipe: %q is not the name of a recipe: use %s", name, c.describeNames())
	}
	dir := filepath.Join(c.Dir, name)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fault.NewDenied("spec.platform.exec.recipe: %q is not a recipe in %s: use %s, or copy the recipe there", name, c.Dir, c.describeNames())
	}
	r, err := recipe.Load(dir)
	if err != nil {
		return nil, fault.NewDenied("spec.platform.exec.recipe: %w", err)
	}
	return r, nil
}

// describeNames lists the recipes for a message.
func (c Catalog) describeNames() string {
	found, err := filepath.Glob(filepath.Join(c.Dir, "*", recipe.FileName))
	if err != nil || len(found) == 0 {
		return "the name of a folder with " + recipe.FileName
	}
	var names []string
	for _, path := range found {
		if name := filepath.Base(filepath.Dir(path)); !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// CompleteParameters returns the parameters of a platform with the defaults of the recipe. The error
// is fault.Denied, and names each parameter, its value and what is allowed.
func CompleteParameters(r *recipe.Recipe, p *hivev1.ExecPlatform) (map[string]string, error) {
	with, err := r.Parameters.Complete(givenParameters(p))
	if err != nil {
		return nil, fault.NewDenied("spec.platform.exec: %w", err)
	}
	return with, nil
}

func givenParameters(p *hivev1.ExecPlatform) map[string]string {
	out := map[string]string{}
	for name, value := range p.With {
		out[name] = string(value)
	}
	return out
}

// minTimeout is the shortest time limit that the schema accepts.
const minTimeout = time.Second

// ReadTimeouts parses time limits. The schema rejects invalid ones; a stored object may be older.
func ReadTimeouts(t hivev1.ExecTimeouts) (map[recipe.Verb]time.Duration, error) {
	written := map[recipe.Verb]hivev1.ExecTimeout{
		recipe.Prepare: t.Prepare, recipe.Create: t.Create, recipe.Destroy: t.Destroy, recipe.Observe: t.Observe,
		recipe.Kubeconfig: t.Kubeconfig, recipe.Stop: t.Stop, recipe.Start: t.Start,
	}
	out := map[recipe.Verb]time.Duration{}
	for _, v := range slices.Sorted(maps.Keys(written)) {
		limit, err := written[v].Parse()
		if err == nil && limit < minTimeout && written[v] != "" {
			err = fmt.Errorf("%q is too short: write at least %s", string(written[v]), minTimeout)
		}
		if err != nil {
			return nil, fault.NewDenied("spec.platform.exec.timeouts.%s: %w", v, err)
		}
		out[v] = limit
	}
	return out, nil
}

// HibernationObstacle returns why clusters of a platform cannot hibernate; "" if they can. It is also
// "" while the recipe cannot be read: the programs may exist, and calls of them report the error.
func (c Catalog) HibernationObstacle(p hivev1.Platform) string {
	if p.Exec == nil {
		return ""
	}
	r, err := c.load(p.Exec.Recipe)
	if err != nil || r.CanHibernate() {
		return ""
	}
	return DescribeObstacle(r.Name)
}

// DescribeObstacle says that clusters of a recipe cannot hibernate, and what to do about it.
func DescribeObstacle(name string) string {
	return fmt.Sprintf("Recipe %q has no programs %s and %s, so its clusters cannot hibernate: add the programs, or set spec.powerState to Running.", name, recipe.Start, recipe.Stop)
}

// MissingRequirements describes what clusters of a platform need and this computer lacks, one text
// each.
func (c Catalog) MissingRequirements(p hivev1.Platform) []string {
	if p.Exec == nil {
		return nil
	}
	r, err := c.Find(p.Exec)
	if err != nil {
		return []string{fault.OneLine(err)}
	}
	var out []string
	if _, err := CompleteParameters(r, p.Exec); err != nil {
		out = append(out, fault.OneLine(err))
	}
	for _, program := range r.Needs.Missing() {
		out = append(out, fmt.Sprintf("spec.platform.exec.recipe: recipe %q needs the program %s, which is not in the PATH of hotspare: "+
			"install it, and restart hotspare if it is in a new folder", r.Name, program))
	}
	return out
}

// CheckPool returns MissingRequirements and ContentVersion for the clusters of a pool. It ignores the
// image, because the recipes are in a folder.
func (c Catalog) CheckPool(_ context.Context, p *hivev1.ClusterPool, _ string) (missing []string, version string) {
	return c.MissingRequirements(p.Spec.Platform), c.ContentVersion(p.Spec.Platform)
}

// ContentVersion returns the version of the recipe of a platform; "" if it cannot be read.
func (c Catalog) ContentVersion(p hivev1.Platform) string {
	if p.Exec == nil {
		return ""
	}
	r, err := c.load(p.Exec.Recipe)
	if err != nil {
		return ""
	}
	version, err := r.ContentVersion()
	if err != nil {
		return "" // the files are being replaced
	}
	return version
}
