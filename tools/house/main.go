// Command house measures the Go code of a tree: how functions are named, how long and how
// complex they are, how comments are worded, how errors are handled. It parses files and
// needs no build, so that it measures any Go project in seconds:
//
//	go run ./tools/house [-worst N] [folder]
//
// Tests are counted, and generated and vendored files are left out. With -worst, the names
// of functions and the sentences of comments that make the figures are listed, too.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	worst := flag.Int("worst", 0, "list this number of functions and sentences behind each figure")
	flag.Parse()
	root := "."
	if flag.NArg() > 0 {
		root = flag.Arg(0)
	}
	t, err := readTree(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
	printFigures(os.Stdout, t.measureAll(), *worst)
}

// printFigures prints a line for each figure, and below it as many of its examples as worst.
func printFigures(w io.Writer, figures []figure, worst int) {
	for _, f := range figures {
		fmt.Fprintf(w, "%-58s %s\n", f.name, f.value)
		for _, example := range f.examples[:min(worst, len(f.examples))] {
			fmt.Fprintf(w, "    %s\n", example)
		}
	}
}
