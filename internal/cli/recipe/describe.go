package recipe

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/recipe"
)

const describeLong = `Show the parameters of a recipe, its programs with their time limits, what one cluster
needs, and the manifest of a ClusterPool to start from. RECIPE is a folder or the name of
a recipe.`

// describeReport is the output of recipe describe for programs.
type describeReport struct {
	listEntry
	// Dir is empty for a shipped recipe.
	Dir        string              `json:"dir,omitempty"`
	Memory     string              `json:"memory"`
	Disk       string              `json:"disk"`
	Parameters []describeParameter `json:"parameters"`
	// Timeouts are those of the recipe's programs.
	Timeouts map[recipe.Verb]string `json:"timeouts"`
	// Pool is the manifest of a ClusterPool.
	Pool string `json:"pool"`
}

type describeParameter struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Required    bool     `json:"required"`
	Default     *string  `json:"default,omitempty"`
	Enum        []string `json:"enum,omitempty"`
	Pattern     string   `json:"pattern,omitempty"`
	// Environment is the environment variable with the value.
	Environment string `json:"environment"`
}

func (a commands) describeCommand() *cobra.Command {
	s := &source{}
	poolOnly := false
	cmd := &cobra.Command{
		Use:   "describe RECIPE",
		Short: "Show the parameters and programs of a recipe, and a pool to start from",
		Long:  describeLong,
		Example: `  hotspare recipe describe kind
  hotspare recipe describe ./mytool
  hotspare recipe describe ./mytool --pool > pool.yaml`,
		Args:              base.RequireOneName("recipe"),
		ValidArgsFunction: s.completeRecipes,
	}
	s.addFlag(cmd)
	cmd.Flags().BoolVar(&poolOnly, "pool", false, "print only the manifest of the ClusterPool")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		describe := a.describeRecipe
		if poolOnly {
			describe = a.printPool
		}
		return s.withRecipe(args[0], describe)
	}
	return cmd
}

func (a commands) describeRecipe(f found) error {
	switch a.Flags.Output {
	case base.AsJSON, base.AsYAML:
		return a.PrintEncoded(newDescribeReport(f))
	case base.AsName:
		_, err := fmt.Fprintln(a.Stdout, f.Name)
		return err
	}
	if err := a.WriteSections(a.Stdout, buildFacts(f), buildParameterTable(f.Recipe), buildVerbTable(f.Recipe)); err != nil {
		return err
	}
	_, err := io.WriteString(a.Stdout, "\nPOOL\n"+formatPool(f.Recipe))
	return err
}

func (a commands) printPool(f found) error {
	_, err := io.WriteString(a.Stdout, formatPool(f.Recipe))
	return err
}

func newDescribeReport(f found) describeReport {
	d := describeReport{
		listEntry: newListEntry(f.Recipe), Memory: f.Needs.Memory.String(), Disk: f.Needs.Disk.String(),
		Parameters: []describeParameter{}, Timeouts: map[recipe.Verb]string{}, Pool: formatPool(f.Recipe),
	}
	if !f.isShipped {
		d.Dir = f.Dir
	}
	for _, name := range f.Parameters.Names() {
		p := f.Parameters.Property(name)
		d.Parameters = append(d.Parameters, describeParameter{
			Name: name, Description: p.Description, Required: f.Parameters.IsRequired(name), Default: p.Default,
			Enum: p.Enum, Pattern: p.Pattern, Environment: recipe.EnvironmentName(name),
		})
	}
	for _, v := range listVerbs(f.Recipe) {
		d.Timeouts[v] = formatTimeout(f.Recipe, v)
	}
	return d
}

func buildFacts(f found) *base.Table {
	t := base.NewTable()
	t.AddRow("Recipe", f.Name)
	t.AddRow("Version", base.ValueOrNone(f.Version))
	t.AddRow("Description", base.ValueOrNone(f.Description))
	t.AddRow("Folder", f.location())
	t.AddRow("Hibernates", formatYesNo(f.CanHibernate()))
	t.AddRow("Programs", formatPrograms(f.Needs.Programs, f.Needs.Missing()))
	if m, d := f.Needs.Memory, f.Needs.Disk; !m.IsZero() || !d.IsZero() {
		t.AddRow("Each cluster", fmt.Sprintf("%s of memory, %s of disk space", m.String(), d.String()))
	}
	return t
}

func buildParameterTable(r *recipe.Recipe) *base.Table {
	t := base.NewTable("PARAMETER", "DEFAULT", "ALLOWED", "DESCRIPTION")
	for _, name := range r.Parameters.Names() {
		p := r.Parameters.Property(name)
		t.AddRow(name, formatDefault(r, name), formatAllowed(p), base.ValueOrNone(p.Description))
	}
	return t
}

func formatDefault(r *recipe.Recipe, name string) string {
	switch d := r.Parameters.Property(name).Default; {
	case r.Parameters.IsRequired(name):
		return "(required)"
	case d == nil:
		return base.None
	case *d == "":
		return `""`
	default:
		return *d
	}
}

func formatAllowed(p recipe.Property) string {
	var rules []string
	if len(p.Enum) > 0 {
		rules = append(rules, strings.Join(p.Enum, "|"))
	}
	if p.Pattern != "" {
		rules = append(rules, p.Pattern)
	}
	if p.MinLength > 0 {
		rules = append(rules, fmt.Sprintf("at least %d characters", p.MinLength))
	}
	if p.MaxLength > 0 {
		rules = append(rules, fmt.Sprintf("at most %d characters", p.MaxLength))
	}
	if len(rules) == 0 {
		return "any"
	}
	return strings.Join(rules, ", ")
}

func buildVerbTable(r *recipe.Recipe) *base.Table {
	t := base.NewTable("PROGRAM", "TIME LIMIT")
	for _, v := range listVerbs(r) {
		t.AddRow(string(v), formatTimeout(r, v))
	}
	return t
}

func formatTimeout(r *recipe.Recipe, v recipe.Verb) string {
	return string(*base.ToAPIDuration(r.Timeout(v)))
}

// defaultImageSet is the ClusterImageSet that hotspare up creates.
const defaultImageSet = "kubernetes"

// quoteYAML returns a text as a double-quoted scalar: each JSON string is one.
func quoteYAML(text string) string {
	raw, err := json.Marshal(text)
	base.MustSucceed(err) // a string can always be encoded
	return string(raw)
}

// formatPool returns the manifest of a ClusterPool with all parameters of the recipe.
func formatPool(r *recipe.Recipe) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: hive.openshift.io/v1
kind: ClusterPool
metadata:
  name: %[1]s
spec:
  baseDomain: local.hotspare.io
  size: 2
  imageSetRef:
    name: %[2]s # on a hub: the image set with the image that contains the recipes
  platform:
    exec:
      recipe: %[1]s
`, r.Name, defaultImageSet)
	if len(r.Parameters.Names()) == 0 {
		return b.String()
	}
	b.WriteString("      with:\n")
	for _, name := range r.Parameters.Names() {
		value := r.Parameters.Property(name).Default
		switch {
		case value != nil:
			fmt.Fprintf(&b, "        %s: %s\n", name, quoteYAML(*value))
		case r.Parameters.IsRequired(name):
			fmt.Fprintf(&b, "        %s: \"\" # required\n", name)
		default:
			fmt.Fprintf(&b, "        # %s: \"\"\n", name)
		}
	}
	return b.String()
}
