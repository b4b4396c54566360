package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"

	"hotspare.io/hotspare/internal/up"
)

// keptFlags are the flags of hotspare up that describe the data folder's clusters: the next start uses them
// too, so that it manages the same clusters in the same way.
var keptFlags = []string{
	"additional-certificate-authorities", "authentication-config", "containers", "diagnostics", "global-pull-secret", "image-cache-size",
	"insecure-registries", "installer", "recipes",
}

// passedFlags are the further flags that a hub in the background gets.
var passedFlags = []string{"console-address", "hub-only", "metrics-address", "port"}

// listGiven returns the names of the flags of hotspare up that were given on the command line.
func listGiven(set *pflag.FlagSet) []string {
	var given []string
	set.Visit(func(f *pflag.Flag) {
		if slices.Contains(keptFlags, f.Name) || slices.Contains(passedFlags, f.Name) {
			given = append(given, f.Name)
		}
	})
	return given
}

// readFlags returns the values that these flags have now.
func readFlags(set *pflag.FlagSet, names []string) up.Flags {
	out := up.Flags{}
	for _, name := range names {
		f := set.Lookup(name)
		if list, ok := f.Value.(pflag.SliceValue); ok {
			out[name] = list.GetSlice()
			continue
		}
		out[name] = []string{f.Value.String()}
	}
	return out
}

// applyKept sets the flags that an earlier start has kept and that are not set, and returns them. A name
// that is not one of keptFlags is that of another version of hotspare, and is ignored.
func applyKept(set *pflag.FlagSet, kept up.Flags) (up.Flags, error) {
	applied := up.Flags{}
	for _, name := range keptFlags {
		values, found := kept[name]
		if !found || set.Changed(name) {
			continue
		}
		applied[name] = values
		for _, value := range values {
			if err := set.Set(name, value); err != nil {
				return nil, fmt.Errorf("the flag --%s of an earlier start: %w", name, err)
			}
		}
	}
	return applied, nil
}

// planKept returns the flags that the next start uses: those of earlier starts, and those given now. One that
// was given with its default is not kept any more.
func planKept(set *pflag.FlagSet, kept up.Flags, given []string) up.Flags {
	out := up.Flags{}
	for _, name := range keptFlags {
		switch f := set.Lookup(name); {
		case slices.Contains(given, name) && f.Value.String() == f.DefValue:
		case slices.Contains(given, name):
			out[name] = readFlags(set, []string{name})[name]
		case kept[name] != nil:
			out[name] = kept[name]
		}
	}
	return out
}

// printKept prints which flags of earlier starts apply, and how to reset one.
func printKept(out io.Writer, set *pflag.FlagSet, kept up.Flags) {
	for _, name := range keptFlags {
		if kept[name] != nil {
			fmt.Fprintf(out, "using the flags of an earlier start: %s\n  (to reset a flag, give it its default, as in %s)\n", kept, formatDefault(set.Lookup(name)))
			return
		}
	}
}

// formatDefault returns a flag with its default, as a user types it.
func formatDefault(f *pflag.Flag) string {
	if f.DefValue == "" || f.DefValue == "[]" { // that of a list
		return "--" + f.Name + `=""`
	}
	return "--" + f.Name + "=" + f.DefValue
}
