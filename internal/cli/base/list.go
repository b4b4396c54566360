package base

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
)

// AddAllNamespacesFlag adds -A, --all-namespaces to a command.
func AddAllNamespacesFlag(cmd *cobra.Command, everywhere *bool) {
	cmd.Flags().BoolVarP(everywhere, "all-namespaces", "A", false, "list objects of all namespaces")
}

// ListNamespace returns the namespace to list: the command's, or "" for all namespaces.
func ListNamespace(h *Hub, everywhere bool) string {
	if everywhere {
		return ""
	}
	return h.Namespace
}

// ReportEmptyList prints to standard error that a list is empty, so that a pipe gets an empty
// list.
func (a *App) ReportEmptyList(what string, h *Hub, everywhere bool, command string) error {
	where := "in namespace " + h.Namespace + " (-A lists all namespaces)"
	if everywhere {
		where = "in any namespace"
	}
	_, err := fmt.Fprintf(a.Stderr, "No %s %s. To create one:\n  %s\n", what, where, a.FormatCommand("%s", command))
	return err
}

// SortedKeys returns the keys of m by namespace and name.
func SortedKeys[T any](m map[types.NamespacedName]T) []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(m), func(a, b types.NamespacedName) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}

// EmptyIfNil returns list, or an empty list for nil, which JSON would print as null.
func EmptyIfNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
