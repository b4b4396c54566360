package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
)

// pluginName is the file name by which kubectl finds the plugin.
const pluginName = "kubectl-hotspare"

// ProgramName returns the command by which the user runs this program, from the first word of its
// command line: a kubectl plugin as a kubectl command, and a program outside of the PATH by its
// path. Hints contain it, so that the user can copy them.
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

// helpName returns the name for usage lines and examples. Help texts are quoted elsewhere, so they
// contain no path of this machine. Hints in messages contain the path.
func helpName(name string) string {
	if strings.ContainsRune(name, filepath.Separator) {
		return base.ProgramName
	}
	return name
}

// renameInHelp replaces the program's name in the help of all commands.
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
