package cli

import (
	"io"
	"os"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// palette gives words their colours; the nil one leaves them as they are.
type palette map[string]string

// colours are those of a terminal: green is ready for use, blue asleep, yellow
// under way, red wants a person.
var colours = palette{
	stateRunning:     "\x1b[32m",
	stateHibernating: "\x1b[34m",
	stateInstalling:  "\x1b[33m",
	stateResuming:    "\x1b[33m",
	stateStopping:    "\x1b[33m",
	stateWaiting:     "\x1b[33m",
	stateAssigned:    "\x1b[33m",
	stateReleasing:   "\x1b[2m",
	stateDeleting:    "\x1b[2m",
	stateFailed:      "\x1b[31m",
	stateLost:        "\x1b[31m",
}

// stockColours are those of what customizations are to pools: green is free, yellow
// wants to be waited for, red wants a person.
var stockColours = palette{
	string(hivev1.InventoryAvailable):             "\x1b[32m",
	string(hivev1.InventoryToBeUpdated):           "\x1b[33m",
	string(hivev1.InventoryUnavailable):           "\x1b[33m",
	string(hivev1.InventoryToBeDeleted):           "\x1b[2m",
	string(hivev1.InventoryBrokenByConfiguration): "\x1b[31m",
	string(hivev1.InventoryBrokenByCloud):         "\x1b[31m",
	string(hivev1.InventoryMissing):               "\x1b[31m",
}

func (p palette) paint(word string) string {
	if code, ok := p[word]; ok {
		return code + word + "\x1b[0m"
	}
	return word
}

// palette is colours for a terminal whose owner has not set NO_COLOR (no-color.org).
func (a *app) palette(w io.Writer) palette {
	if os.Getenv("NO_COLOR") != "" || !a.IsTerminal(w) {
		return nil
	}
	return colours
}
