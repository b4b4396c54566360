package inventory

import (
	"fmt"
	"strings"
	"testing"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/inventoryview"
)

func TestWhatCannotBeReadIsTold(t *testing.T) {
	a := commands{base.NewApp(base.Options{})}
	c := &hivev1.ClusterDeploymentCustomization{}
	c.Unreadable = "spec.installConfigPatches: 8 is not a list"
	if rows := fmt.Sprint(a.buildCustomizationFacts(c, &inventoryview.Objects{}).Rows); !strings.Contains(rows, "[Unreadable "+c.Unreadable+"]") {
		t.Error(rows)
	}
}
