package kubectl

import (
	"testing"

	"hotspare.io/hotspare/internal/cli/kubectl/english"
)

func TestNoTranslationsAreRead(t *testing.T) {
	if err := english.Err(); err != nil {
		t.Errorf("package english is initialized too late: %v", err)
	}
}
