package up

import (
	"slices"
	"testing"
)

func TestMachinesOfClustersThatTheHubDoesNotNameAreStrays(t *testing.T) {
	got := listStrayClusters([]string{"a", "b", "c"}, map[string]string{"b": "n/b", "d": "n/d"})
	if want := []string{"a", "c"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
