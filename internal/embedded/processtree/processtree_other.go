//go:build !linux

package processtree

import "context"

// Freeze returns ErrUnsupported.
func Freeze(context.Context, int) (*Tree, error) { return nil, ErrUnsupported }

// Thaw does nothing.
func (t *Tree) Thaw() error { return nil }

// ContinueDescendants does nothing.
func ContinueDescendants() error { return nil }

// ContinueWhenParentDies does nothing.
func ContinueWhenParentDies() error { return nil }
