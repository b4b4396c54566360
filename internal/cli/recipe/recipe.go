// Package recipe implements the commands for recipes, which create clusters with any tool.
package recipe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/recipes"
)

// commands has a method for each command of this package. The methods share the App.
type commands struct{ *base.App }

// NewCommand returns the command "hotspare recipe" with its subcommands.
func NewCommand(app *base.App) *cobra.Command {
	a := commands{app}
	cmd := a.NewCommandGroup("recipe", "Programs that create clusters with any tool",
		a.listCommand(), a.describeCommand(), a.newCommand(), a.testCommand())
	cmd.Aliases = []string{"recipes"}
	cmd.Long = `A recipe is a folder with recipe.yaml and programs that create, observe, stop, start and
destroy clusters with a tool of your choice. A pool names its recipe in
spec.platform.exec.recipe.

Without --recipes, the commands use the recipes that hotspare ships.`
	return cmd
}

// source is where the commands find recipes.
type source struct {
	// dir is the value of --recipes; empty for the shipped recipes.
	dir string
}

func (s *source) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.dir, "recipes", "", "`folder` that contains one folder for each recipe (default: the recipes that hotspare ships)")
	base.MustSucceed(cmd.MarkFlagDirname("recipes"))
}

// withFolder calls use with the folder of the recipes. It writes the shipped recipes to a temporary
// folder, and deletes the folder afterward.
func (s *source) withFolder(use func(dir string) error) error {
	if s.dir != "" {
		return use(s.dir)
	}
	dir, err := os.MkdirTemp("", "hotspare-recipes-")
	if err != nil {
		return fmt.Errorf("writing the shipped recipes: %w", err)
	}
	err = recipes.WriteTo(dir)
	if err == nil {
		err = use(dir)
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// found is a recipe, and whether hotspare ships it.
type found struct {
	*recipe.Recipe
	isShipped bool
}

// location returns the folder of the recipe, for people.
func (f found) location() string {
	if f.isShipped {
		return "shipped with hotspare"
	}
	return f.Dir
}

// withRecipe calls use with the recipe that an argument names: a folder or the name of a recipe. A
// folder takes precedence.
func (s *source) withRecipe(argument string, use func(found) error) error {
	isPath := strings.ContainsRune(argument, filepath.Separator) || argument == "." || argument == ".."
	_, err := os.Stat(filepath.Join(argument, recipe.FileName))
	if isPath || s.dir == "" && err == nil {
		r, err := recipe.Load(argument)
		if err != nil {
			return err
		}
		return use(found{Recipe: r})
	}
	return s.withFolder(func(dir string) error {
		names, err := listNames(dir)
		if err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(dir, argument)); errors.Is(err, fs.ErrNotExist) {
			return base.WithRemedy(fmt.Errorf("there is no recipe %q and no such folder", argument), "use one of these recipes: "+strings.Join(names, ", "))
		}
		r, err := recipe.Load(filepath.Join(dir, argument))
		if err != nil {
			return err
		}
		return use(found{Recipe: r, isShipped: s.dir == ""})
	})
}

// listNames returns the names of the folders in dir that contain a recipe.yaml, sorted.
func listNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, base.WithRemedy(fmt.Errorf("reading the recipes: %w", err), "specify a folder that contains one folder for each recipe with --recipes")
	}
	var names []string
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(dir, e.Name(), recipe.FileName)); err == nil {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return nil, base.WithRemedy(fmt.Errorf("folder %s contains no recipes: none of its folders has a file %s", dir, recipe.FileName),
			"create one with: hotspare recipe new NAME --dir "+dir)
	}
	return names, nil
}

// completeRecipes completes the name of a recipe, or a folder.
func (s *source) completeRecipes(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if s.dir == "" {
		return recipes.Names(), cobra.ShellCompDirectiveDefault
	}
	names, err := listNames(s.dir)
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return names, cobra.ShellCompDirectiveDefault
}

// formatYesNo formats a Boolean for tables.
func formatYesNo(value bool) string {
	if value {
		return "yes"
	}
	return "no"
}
