package base

import (
	"io"
	"os"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

// Palette maps words to their colours. A nil palette leaves words uncoloured.
type Palette map[string]string

// colours are those of a terminal: green is ready to use, blue is hibernating, yellow is in
// progress, red needs attention.
var colours = Palette{
	clusterstate.Running:     "\x1b[32m",
	clusterstate.Hibernating: "\x1b[34m",
	clusterstate.Installing:  "\x1b[33m",
	clusterstate.Resuming:    "\x1b[33m",
	clusterstate.Stopping:    "\x1b[33m",
	clusterstate.Waiting:     "\x1b[33m",
	clusterstate.Assigned:    "\x1b[33m",
	clusterstate.Releasing:   "\x1b[2m",
	clusterstate.Deleting:    "\x1b[2m",
	clusterstate.Failed:      "\x1b[31m",
	clusterstate.Lost:        "\x1b[31m",
}

// InventoryColours are the colours of a customization's status in a pool's inventory: green is
// available, yellow is in use or will change, red needs attention.
var InventoryColours = Palette{
	string(hivev1.InventoryAvailable):             "\x1b[32m",
	string(hivev1.InventoryToBeUpdated):           "\x1b[33m",
	string(hivev1.InventoryUnavailable):           "\x1b[33m",
	string(hivev1.InventoryToBeDeleted):           "\x1b[2m",
	string(hivev1.InventoryBrokenByConfiguration): "\x1b[31m",
	string(hivev1.InventoryBrokenByCloud):         "\x1b[31m",
	string(hivev1.InventoryMissing):               "\x1b[31m",
}

func (p Palette) colourWord(word string) string {
	if code, ok := p[word]; ok {
		return code + word + "\x1b[0m"
	}
	return word
}

// PaletteFor returns the colours for a terminal; nil for other streams and if NO_COLOR is set
// (no-color.org).
func (a *App) PaletteFor(w io.Writer) Palette {
	if os.Getenv("NO_COLOR") != "" || !a.IsTerminal(w) {
		return nil
	}
	return colours
}
