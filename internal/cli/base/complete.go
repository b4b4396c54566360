package base

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// completionTimeout is the maximum time to complete a name.
const completionTimeout = 2 * time.Second

// nameLister lists the names that the shell can complete.
type nameLister func(context.Context, *Hub) ([]string, error)

// CompleteNames completes names that are not yet among the arguments. It returns no names if the
// hub cannot be reached: a shell cannot show errors during completion.
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

// CompletePools completes the name of one pool.
func (a *App) CompletePools(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.CompleteNames(cmd, args, listPoolNames)
}

// CompleteClaims completes the names of any number of claims.
func (a *App) CompleteClaims(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.CompleteNames(cmd, args, listClaimNames)
}

// CompleteOneClaim completes the name of one claim.
func (a *App) CompleteOneClaim(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.CompleteNames(cmd, args, listClaimNames)
}

// CompleteClusters completes names of claims and clusters, because users know a claimed cluster
// by its claim.
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
