package recipe

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/recipe"
)

const listLong = `List recipes: whether their clusters can hibernate, and which of the programs that they
need are missing on this machine. A program is missing if it is not in PATH. To list all
programs that a recipe needs, use: hotspare recipe describe NAME`

// listReport is the output of recipe list for programs.
type listReport struct {
	Recipes []listEntry `json:"recipes"`
}

type listEntry struct {
	Name         string        `json:"name"`
	Version      string        `json:"version"`
	Description  string        `json:"description"`
	CanHibernate bool          `json:"canHibernate"`
	Verbs        []recipe.Verb `json:"verbs"`
	Programs     []string      `json:"programs"`
	// Missing are the programs that are not in PATH.
	Missing []string `json:"missing"`
}

func newListEntry(r *recipe.Recipe) listEntry {
	return listEntry{
		Name: r.Name, Version: r.Version, Description: r.Description, CanHibernate: r.CanHibernate(), Verbs: listVerbs(r),
		Programs: base.EmptyIfNil(r.Needs.Programs), Missing: base.EmptyIfNil(r.Needs.Missing()),
	}
}

func listVerbs(r *recipe.Recipe) []recipe.Verb {
	verbs := []recipe.Verb{}
	for _, v := range recipe.Verbs {
		if r.Has(v) {
			verbs = append(verbs, v)
		}
	}
	return verbs
}

func (a commands) listCommand() *cobra.Command {
	s := &source{}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List recipes and the programs that they lack on this machine",
		Long:    listLong,
		Example: `  hotspare recipe list
  hotspare recipe list --recipes ./recipes`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return s.withFolder(a.listRecipes) },
	}
	s.addFlag(cmd)
	return cmd
}

// listRecipes prints the valid recipes, and returns the errors of the others.
func (a commands) listRecipes(dir string) error {
	names, err := listNames(dir)
	if err != nil {
		return err
	}
	report := listReport{Recipes: []listEntry{}}
	var errs []error
	for _, name := range names {
		r, err := recipe.Load(filepath.Join(dir, name))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		report.Recipes = append(report.Recipes, newListEntry(r))
	}
	return errors.Join(append([]error{a.printList(report)}, errs...)...)
}

func (a commands) printList(report listReport) error {
	switch a.Flags.Output {
	case base.AsJSON, base.AsYAML:
		return a.PrintEncoded(report)
	case base.AsName:
		for _, e := range report.Recipes {
			if _, err := fmt.Fprintln(a.Stdout, e.Name); err != nil {
				return err
			}
		}
		return nil
	}
	t := base.NewTable("NAME", "VERSION", "HIBERNATES", "MISSING", "DESCRIPTION")
	for _, e := range report.Recipes {
		t.AddRow(e.Name, base.ValueOrNone(e.Version), formatYesNo(e.CanHibernate), formatMissing(e.Missing), base.ValueOrNone(e.Description))
	}
	if len(t.Rows) == 0 {
		return nil
	}
	t.FitWidth(a.Width(a.Stdout), "VERSION")
	return t.WriteTo(a.Stdout, a.PaletteFor(a.Stdout))
}

// maxListed is the maximum number of missing programs in a table.
const maxListed = 2

// formatMissing lists missing programs for a table: "etcd, kubeadm and 5 more".
func formatMissing(missing []string) string {
	if len(missing) <= maxListed+1 {
		return base.ValueOrNone(strings.Join(missing, ", "))
	}
	return fmt.Sprintf("%s and %d more", strings.Join(missing[:maxListed], ", "), len(missing)-maxListed)
}

// formatPrograms lists programs and which of them are missing: "docker, kind (missing: kind)".
func formatPrograms(programs, missing []string) string {
	text := base.ValueOrNone(strings.Join(programs, ", "))
	if len(missing) > 0 {
		text += " (missing: " + strings.Join(missing, ", ") + ")"
	}
	return text
}
