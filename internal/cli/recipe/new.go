package recipe

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/recipe"
)

const newLong = `Create a recipe to start from, in a new folder with its name. The recipe works: its
clusters are folders in $XDG_STATE_HOME (default: ~/.local/state). Replace the bodies of
its programs with calls of your tool. docs/recipes.md shows how, step by step.`

// newReport is the output of recipe new for programs.
type newReport struct {
	Dir   string   `json:"dir"`
	Files []string `json:"files"`
}

func (a commands) newCommand() *cobra.Command {
	var parent string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Create a recipe to start from",
		Long:  newLong,
		Example: `  hotspare recipe new mytool
  hotspare recipe new mytool --dir recipes`,
		Args:              base.RequireOneName("recipe"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if filepath.Base(args[0]) != args[0] {
				return base.UsageErrorFor(fmt.Errorf("%q is a path: specify a name, and its parent folder with --dir", args[0]), cmd)
			}
			return a.createSkeleton(filepath.Join(parent, args[0]))
		},
	}
	cmd.Flags().StringVar(&parent, "dir", ".", "`folder` in which to create the folder of the recipe")
	base.MustSucceed(cmd.MarkFlagDirname("dir"))
	return cmd
}

func (a commands) createSkeleton(dir string) error {
	files, err := recipe.WriteSkeleton(dir)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(dir) {
		dir = "./" + dir
	}
	switch a.Flags.Output {
	case base.AsJSON, base.AsYAML:
		return a.PrintEncoded(newReport{Dir: dir, Files: files})
	case base.AsName:
		_, err = fmt.Fprintln(a.Stdout, dir)
		return err
	}
	_, err = fmt.Fprintf(a.Stdout, `Created recipe %s: %s

Edit its programs. Then test the recipe, and print a pool that uses it:
  %s
  %s
`, dir, strings.Join(files, ", "), a.FormatCommand("recipe test %s", dir), a.FormatCommand("recipe describe %s", dir))
	return err
}
