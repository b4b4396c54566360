package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
)

// pluginName is the name of the file by which kubectl finds us.
const pluginName = "kubectl-hotspare"

// ProgramName is how people call a program that was started as file, the first word of its
// command line: a plugin of kubectl as kubectl's command, and one that is not in the PATH by
// its path. What we advise is there to be copied.
func ProgramName(file string) string {
	switch {
	case strings.TrimSuffix(filepath.Base(file), ".exe") == pluginName:
		return "kubectl " + base.ProgramName
	case strings.ContainsRune(file, filepath.Separator):
		return file
	default:
		return base.ProgramName
	}
}

// helpName is the name in usage lines and examples: help is read, and quoted, elsewhere, and
// no path of this machine belongs there. What messages propose has the path, to be copied.
func helpName(name string) string {
	if strings.ContainsRune(name, filepath.Separator) {
		return base.ProgramName
	}
	return name
}

// renameInHelp has the help of all commands show the name by which people call them.
func renameInHelp(cmd *cobra.Command, name string) {
	if !cmd.HasParent() {
		cmd.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: name}
	}
	cmd.Example = strings.ReplaceAll(cmd.Example, "  "+base.ProgramName+" ", "  "+name+" ")
	cmd.Example = strings.ReplaceAll(cmd.Example, "$("+base.ProgramName+" ", "$("+name+" ")
	cmd.Example = strings.ReplaceAll(cmd.Example, "| "+base.ProgramName+" ", "| "+name+" ")
	for _, c := range cmd.Commands() {
		renameInHelp(c, name)
	}
}
