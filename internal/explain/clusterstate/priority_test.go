package clusterstate_test

import (
	"testing"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

func TestClaimPriority(t *testing.T) {
	reported := int32(10)
	for name, c := range map[string]struct {
		annotation       string
		status           *int32
		effective, asked int
	}{
		"without one":           {"", nil, 0, 0},
		"not reported yet":      {"30", nil, 30, 30},
		"limited by a policy":   {"30", &reported, 10, 30},
		"of the claim's set":    {"", &reported, 10, 0},
		"one that is not valid": {"high", nil, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &hivev1.ClusterClaim{}
			claim.Annotations = map[string]string{hivev1.AnnotationPriority: c.annotation}
			claim.Status.Priority = c.status
			if effective, asked := clusterstate.ClaimPriority(claim); effective != c.effective || asked != c.asked {
				t.Errorf("got %d, %d; want %d, %d", effective, asked, c.effective, c.asked)
			}
		})
	}
}
