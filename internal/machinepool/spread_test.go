package machinepool

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSpread(t *testing.T) {
	for name, tc := range map[string]struct {
		total int64
		n     int
		want  []int64
	}{
		"even":               {6, 3, []int64{2, 2, 2}},
		"the first get more": {5, 3, []int64{2, 2, 1}},
		"fewer than places":  {1, 3, []int64{1, 0, 0}},
		"nothing":            {0, 2, []int64{0, 0}},
		"no place":           {4, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := SpreadReplicas(tc.total, tc.n); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestASpreadIsWholeAndBalanced(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		total, n := r.Int64N(1000), 1+r.IntN(20)
		var sum int64
		got := SpreadReplicas(total, n)
		for _, x := range got {
			sum += x
		}
		if sum != total || len(got) != n || got[0]-got[n-1] > 1 || !slices.IsSortedFunc(got, func(a, b int64) int { return int(b - a) }) {
			t.Fatalf("Spread(%d, %d) = %v", total, n, got)
		}
	}
}

func TestASpreadRangeHoldsItsBounds(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		low := r.Int64N(50)
		whole, n := Range{low, low + r.Int64N(50)}, 1+r.IntN(10)
		var least, most int64
		for _, x := range SpreadRange(whole, n) {
			if x.Min > x.Max {
				t.Fatalf("SpreadRange(%v, %d) has %v", whole, n, x)
			}
			least, most = least+x.Min, most+x.Max
		}
		if least != whole.Min || most != whole.Max {
			t.Fatalf("SpreadRange(%v, %d) sums to %d..%d", whole, n, least, most)
		}
	}
}

func TestScale(t *testing.T) {
	two := Range{1, 3}
	for name, tc := range map[string]struct {
		r    Range
		l    PoolLoad
		want int64
	}{
		"below the least":                            {two, PoolLoad{}, 1},
		"above the most":                             {two, PoolLoad{Nodes: 7, Pending: 9}, 3},
		"nothing to do":                              {two, PoolLoad{Nodes: 2}, 2},
		"one more for what is pending":               {two, PoolLoad{Nodes: 1, Pending: 40}, 2},
		"the one that joins may take it all":         {two, PoolLoad{Nodes: 2, Joining: 1, Pending: 40}, 2},
		"up to the most":                             {two, PoolLoad{Nodes: 3, Pending: 1}, 3},
		"the empty go":                               {two, PoolLoad{Nodes: 3, Empty: 1}, 2},
		"down to the least":                          {two, PoolLoad{Nodes: 3, Empty: 3}, 1},
		"none goes while something is pending":       {two, PoolLoad{Nodes: 2, Empty: 1, Pending: 1}, 3},
		"none goes while it waits for one that came": {two, PoolLoad{Nodes: 2, Empty: 1, Joining: 1, Pending: 1}, 2},
		"a pool may be empty":                        {Range{0, 3}, PoolLoad{Nodes: 1, Empty: 1}, 0},
		"and fill":                                   {Range{0, 3}, PoolLoad{Pending: 1}, 1},
		"a range of one":                             {Range{2, 2}, PoolLoad{Nodes: 2, Empty: 2}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DesiredNodes(tc.r, tc.l); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// Whatever is seen, the size is within bounds, and grows by no more than one but for them.
func TestScaleKeepsItsBounds(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 20000 {
		low := r.Int64N(5)
		b := Range{low, low + r.Int64N(5)}
		l := PoolLoad{Nodes: r.Int64N(12), Pending: r.Int64N(3), Empty: r.Int64N(14), Joining: r.Int64N(2)}
		n := DesiredNodes(b, l)
		if n < b.Min || n > b.Max || n > max(l.Nodes+1, b.Min) || n < min(max(l.Nodes-l.Empty, 0), b.Max) {
			t.Fatalf("Scale(%v, %+v) = %d", b, l, n)
		}
	}
}
