package clusterpool

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/pool"
)

func TestThePassExecutesEveryVerbOnceInThePlansOrder(t *testing.T) {
	var got []pool.Verb
	for _, st := range slices.Concat(stagesBeforeStatus, stagesAfterStatus) {
		got = append(got, st.verbs...)
	}
	if diff := cmp.Diff(pool.Verbs(), got); diff != "" {
		t.Error(diff)
	}
}
