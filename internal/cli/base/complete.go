package base

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// completionTimeout is how long completing a name may take.
const completionTimeout = 2 * time.Second

// nameLister lists names for the shell to complete.
type nameLister func(context.Context, *Hub) ([]string, error)

// CompleteNames offers names that are not among the arguments yet. Without a hub it
// offers none: a shell has no place for errors.
func (a *App) CompleteNames(cmd *cobra.Command, given []string, all nameLister) ([]string, cobra.ShellCompDirective) {
	h, err := a.ConnectToHub()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	found, err := all(ctx, h)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return excludeGiven(found, given), cobra.ShellCompDirectiveNoFileComp
}

func excludeGiven(all, given []string) []string {
	seen := map[string]bool{}
	for _, name := range given {
		seen[StripKindPrefix(name)] = true
	}
	var out []string
	for _, name := range all {
		if !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}

func (a *App) CompletePools(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.CompleteNames(cmd, args, listPoolNames)
}

func (a *App) CompleteClaims(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.CompleteNames(cmd, args, listClaimNames)
}

func (a *App) CompleteOneClaim(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.CompleteNames(cmd, args, listClaimNames)
}

// CompleteClusters offers claims too: they are what a person knows a cluster by.
func (a *App) CompleteClusters(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.CompleteNames(cmd, args, func(ctx context.Context, h *Hub) ([]string, error) {
		claims, err := listClaimNames(ctx, h)
		if err != nil {
			return nil, err
		}
		clusters, err := h.ListClusters(ctx, h.Namespace)
		if err != nil {
			return nil, err
		}
		for _, cd := range clusters.Items {
			claims = append(claims, cd.Name)
		}
		return claims, nil
	})
}

func listPoolNames(ctx context.Context, h *Hub) ([]string, error) {
	var list hivev1.ClusterPoolList
	err := h.List(ctx, &list, client.InNamespace(h.Namespace))
	var out []string
	for _, p := range list.Items {
		out = append(out, p.Name)
	}
	return out, err
}

func listClaimNames(ctx context.Context, h *Hub) ([]string, error) {
	var list hivev1.ClusterClaimList
	err := h.List(ctx, &list, client.InNamespace(h.Namespace))
	var out []string
	for _, c := range list.Items {
		out = append(out, c.Name)
	}
	return out, err
}
