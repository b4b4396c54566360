// Command openshift-install is the stand-in of package installertest as a program of its own.
package main

import (
	"fmt"
	"os"

	"hotspare.io/hotspare/internal/install/job/installertest"
)

func main() {
	if err := installertest.RunInstaller(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "level=fatal msg=%q\n", err)
		os.Exit(1)
	}
}
