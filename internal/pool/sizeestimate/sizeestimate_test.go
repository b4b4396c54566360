package sizeestimate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestAPoolOfTheTuningNote(t *testing.T) {
	for name, c := range map[string]struct {
		d    Demand
		want Recommendation
	}{
		"a claim every 15 minutes": {
			Demand{Every: 15 * time.Minute, Install: 40 * time.Minute, Resume: 5 * time.Minute, AtOnce: 0.9, Spare: 0.99},
			Recommendation{RunningCount: 2, Size: 8, MaxConcurrent: 7},
		},
		"claims are rare": {
			Demand{Every: 24 * time.Hour, Install: 40 * time.Minute, Resume: 5 * time.Minute, AtOnce: 0.9, Spare: 0.9},
			Recommendation{RunningCount: 1, Size: 1, MaxConcurrent: 1},
		},
		"claims last": {
			Demand{Every: time.Hour, Install: 40 * time.Minute, Resume: 5 * time.Minute, Destroy: 10 * time.Minute, Held: 8 * time.Hour, AtOnce: 0.5, Spare: 0.95},
			Recommendation{RunningCount: 1, Size: 3, MaxConcurrent: 4, MaxSize: 18},
		},
	} {
		got, err := RecommendSize(c.d)
		if err != nil {
			t.Fatal(err)
		}
		if got.AtOnce < c.d.AtOnce || got.Spare < c.d.Spare {
			t.Errorf("%s: %+v promises less than was asked for", name, got)
		}
		got.AtOnce, got.Spare = 0, 0
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// The numbers in docs/tuning.md are those that come out.
func TestTheTableOfTheTuningPage(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "tuning.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (\d+) (min|h) \| (\d+) \| (\d+) \| (\d+) \|$`).FindAllStringSubmatch(string(raw), -1)
	if len(rows) < 5 {
		t.Fatalf("found %d rows", len(rows))
	}
	for _, row := range rows {
		every, err := time.ParseDuration(row[1] + row[2][:1])
		if err != nil {
			t.Fatal(err)
		}
		a, err := RecommendSize(Demand{Every: every, Install: 40 * time.Minute, Resume: 5 * time.Minute, AtOnce: 0.9, Spare: 0.99})
		if got := fmt.Sprint(a.RunningCount, a.Size, a.MaxConcurrent); err != nil || got != strings.Join(row[3:], " ") {
			t.Errorf("one claim every %s: %s, %v, and the page says %v", every, got, err, row[3:])
		}
	}
}

func TestWhatCannotBeWorkedOut(t *testing.T) {
	good := Demand{Every: time.Minute, Install: time.Hour, Resume: time.Minute, AtOnce: 0.9, Spare: 0.9}
	for _, c := range []struct {
		change func(*Demand)
		want   error
	}{
		{func(d *Demand) { d.AtOnce = 1 }, ErrShare},
		{func(d *Demand) { d.Spare = 0 }, ErrShare},
		{func(d *Demand) { d.Every = 0 }, ErrTime},
		{func(d *Demand) { d.Held = -1 }, ErrTime},
		{func(d *Demand) { d.Every = 1 }, ErrMany},
	} {
		d := good
		c.change(&d)
		if _, err := RecommendSize(d); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", d, err, c.want)
		}
	}
}

func TestMoreIsNeverLess(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		d := Demand{
			Every: time.Duration(1+r.IntN(3600)) * time.Second, Install: time.Duration(1+r.IntN(3600)) * time.Second,
			Resume: time.Duration(1+r.IntN(600)) * time.Second, AtOnce: 0.5 + r.Float64()/2.1, Spare: 0.5 + r.Float64()/2.1,
		}
		less, err := RecommendSize(d)
		if err != nil {
			t.Fatal(err)
		}
		d.Every /= 2
		more, err := RecommendSize(d)
		if err != nil || more.RunningCount < less.RunningCount || more.Size < less.Size || more.MaxConcurrent < less.MaxConcurrent {
			t.Errorf("%+v: twice the claims need %+v, and half as many %+v, %v", d, more, less, err)
		}
	}
}

// The pool's own decider, with claims that come at random, serves as many as was promised.
func TestTheDeciderKeepsThePromise(t *testing.T) {
	d := Demand{Every: 3 * time.Minute, Install: 20 * time.Minute, Resume: 4 * time.Minute, Held: time.Minute, AtOnce: 0.9, Spare: 0.97}
	a, err := RecommendSize(d)
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d; %+v", seed, a)
	s := simulation{Demand: d, Recommendation: a, r: rand.New(rand.NewPCG(seed, 0))}
	atOnce, spare := s.run(4000)
	// Of 20,000 seeds, seven served 0.03 less at once than was promised: the standard deviation is 0.007, and spares run out
	// now and then. More may be served than was promised: who finds no running cluster may get one that has just been installed.
	const astray = 0.05
	if atOnce < a.AtOnce-astray || spare < a.Spare-astray {
		t.Errorf("%.3f of the claims were served at once, and %.3f without an install; promised were %.3f and %.3f", atOnce, spare, a.AtOnce, a.Spare)
	}
	s = simulation{Demand: d, Recommendation: Recommendation{RunningCount: a.RunningCount - 1, Size: a.Size}, r: rand.New(rand.NewPCG(seed, 0))}
	if fewer, _ := s.run(4000); fewer > atOnce-0.01 {
		t.Errorf("with one running cluster less %.3f are served at once, with all %.3f: the number has no effect", fewer, atOnce)
	}
}
