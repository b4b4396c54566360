//go:build !sims

package openstack

import "testing"

func TestRealNova(t *testing.T) {
	t.Skip("a real Nova and a real Keystone of Debian are left to make test-sims")
}
