// Command bench measures how fast hotspare is and how much memory it takes on this machine, and
// prints a table. It runs the built binary as a user would.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// row is one line of the table.
type row struct{ what, got, aim string }

func main() {
	binary := flag.String("binary", "bin/hotspare", "the program to measure")
	clusters := flag.Int("clusters", 1000, "how many fake clusters the pool of the burst has")
	claims := flag.Int("claims", 200, "how many claims the burst has")
	only := flag.String("only", "decide,up,claim,sleep,freeze,memory,burst,steady,sizes,bursts,release",
		"parts to run, in their order; there is also fleet (100 pools of 100 clusters)")
	rounds := flag.Int("rounds", 3, "how often claims are measured; the table has medians, and the range")
	flag.Parse()
	if *rounds < 1 {
		fmt.Fprintf(os.Stderr, "error: --rounds is %d: it must be at least 1\n", *rounds)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, &bench{binary: *binary, rounds: *rounds}, strings.Split(*only, ","), *clusters, *claims)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, b *bench, only []string, clusters, claims int) (err error) {
	dir, err := os.MkdirTemp("", "hotspare-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b.dir = dir
	var rows []row
	defer func() { err = errors.Join(err, b.stopHub(context.WithoutCancel(ctx))) }()
	for _, part := range []struct {
		name string
		run  func(context.Context) ([]row, error)
	}{
		{"decide", b.measureDecide},
		{"up", b.measureStart},
		{"local", b.measureLocalPool},
		{"claim", b.measureLocalClaim},
		{"sleep", b.measureHibernation},
		{"freeze", b.measureFreeze},
		{"memory", b.measureMemory},
		{"burst", func(ctx context.Context) ([]row, error) { return b.measureBurst(ctx, clusters, claims) }},
		{"steady", func(ctx context.Context) ([]row, error) { return b.measureSteadyLoad(ctx, clusters) }},
		{"sizes", func(ctx context.Context) ([]row, error) { return b.measurePoolSizes(ctx, clusters) }},
		{"bursts", b.measureMoreBursts},
		{"release", func(ctx context.Context) ([]row, error) { return b.measureRelease(ctx, clusters, claims) }},
		{"fleet", b.measureFleet},
	} {
		needed := part.name == "up" && !slices.Equal(only, []string{"decide"}) ||
			part.name == "local" && slices.ContainsFunc(only, func(s string) bool { return s == "claim" || s == "sleep" || s == "freeze" || s == "memory" })
		if !needed && !slices.Contains(only, part.name) {
			continue
		}
		more, err := part.run(ctx)
		rows = append(rows, more...)
		if err != nil {
			return errors.Join(err, printRows(rows))
		}
	}
	return printRows(rows)
}

func printRows(rows []row) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "MEASURED\tGOT")
	for _, r := range rows {
		got := r.got
		if r.aim != "" {
			got += ", aim: " + r.aim
		}
		fmt.Fprintf(w, "%s\t%s\n", r.what, got)
	}
	return w.Flush()
}

func formatSeconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func formatMillis(d time.Duration) string {
	return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
}
