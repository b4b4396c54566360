package recipe

import (
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
)

func TestTheClustersOfTheSuiteHaveUIDsAsKubernetesHasThem(t *testing.T) {
	t.Parallel()
	s := &Suite{Random: rand.New(rand.NewPCG(1, 2))}
	seen := map[string]bool{}
	for range 100 {
		uid := s.newCluster().Input.UID
		parsed, err := uuid.Parse(uid)
		if err != nil || parsed.Version() != 4 || parsed.Variant() != uuid.RFC4122 || seen[uid] {
			t.Fatalf("%q: version %d, %v, or not unique", uid, parsed.Version(), err)
		}
		seen[uid] = true
	}
}
