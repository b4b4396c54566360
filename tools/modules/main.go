// Command modules checks the modules that are linked into programs: that each is under a
// licence of the list, is no fork or folder in disguise, and is not older than what fixed
// a vulnerability of the list. It asks nobody: what it knows is in this repository.
//
// It does not take the place of make vulnerabilities, which asks what is known today.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	licences := flag.String("licences", "tools/modules/licences.txt", "`file` with the licences that are allowed")
	advisories := flag.String("advisories", "tools/modules/advisories.txt", "`file` with versions that fixed vulnerabilities")
	list := flag.Bool("list", false, "print what is linked, and under which licences")
	flag.Parse()
	faults, err := run(os.Stdout, *licences, *advisories, *list, flag.Args())
	for _, f := range faults {
		fmt.Fprintln(os.Stderr, f)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
	}
	if err != nil || len(faults) > 0 {
		os.Exit(1)
	}
}

// run returns what is wrong with the modules that packages link.
func run(out io.Writer, licences, advisories string, list bool, packages []string) ([]string, error) {
	if len(packages) == 0 {
		return nil, errors.New("no packages: name those of the programs, as ./cmd/... does")
	}
	allowed, err := readLicences(licences)
	if err != nil {
		return nil, err
	}
	known, err := readAdvisories(advisories)
	if err != nil {
		return nil, err
	}
	modules, err := linkedBy(packages)
	if err != nil {
		return nil, err
	}
	var faults []string
	for _, m := range modules {
		under, wrong := allowed.judge(m)
		faults = append(faults, slices.Concat(wrong, disguised(m), known.judge(m))...)
		if list {
			fmt.Fprintf(out, "%s %s %s\n", m.Path, m.Version, strings.Join(under, " "))
		}
	}
	return append(faults, allowed.idle(modules)...), nil
}

// disguised says that something else takes the place of a module: what the list of
// modules, and every database of vulnerabilities, calls by another name.
func disguised(m *module) []string {
	r := m.Replace
	switch {
	case r == nil || r.Path == m.Path && r.Version != "":
		return nil
	case r.Version == "":
		return []string{fmt.Sprintf("%s is replaced by the folder %s: nobody else can build that", m.Path, r.Path)}
	default:
		return []string{fmt.Sprintf("%s is replaced by the fork %s %s: require that by its own name", m.Path, r.Path, r.Version)}
	}
}
