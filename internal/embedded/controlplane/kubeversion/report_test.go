package kubeversion

import (
	"testing"

	"k8s.io/component-base/version"
)

func TestComponentsReportTheVersion(t *testing.T) {
	Report()
	if got := version.Get().GitVersion; got != Get() {
		t.Errorf("components report %s, not %s", got, Get())
	}
}
