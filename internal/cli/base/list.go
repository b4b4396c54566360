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

func AddAllNamespacesFlag(cmd *cobra.Command, everywhere *bool) {
	cmd.Flags().BoolVarP(everywhere, "all-namespaces", "A", false, "of all namespaces")
}

func ListNamespace(h *Hub, everywhere bool) string {
	if everywhere {
		return ""
	}
	return h.Namespace
}

// ReportEmptyList says that a list is empty, to people only: a pipe gets an empty list.
func (a *App) ReportEmptyList(what string, h *Hub, everywhere bool, command string) error {
	where := "in namespace " + h.Namespace + " (-A looks into all)"
	if everywhere {
		where = "in any namespace"
	}
	_, err := fmt.Fprintf(a.Stderr, "No %s %s. To make one:\n  %s\n", what, where, a.FormatCommand("%s", command))
	return err
}

func SortedKeys[T any](m map[types.NamespacedName]T) []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(m), func(a, b types.NamespacedName) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}

func EmptyIfNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
