package jobpod

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/install/job/pod"
)

// RecipesDir is the folder of an image that contains one folder for each recipe.
const RecipesDir = "/recipes"

// NewCommand returns the command `recipe-manager`. Jobs run it, not people. It uses the client, the
// environment and the time limits of h.
func NewCommand(h pod.Host) *cobra.Command {
	cmd := &cobra.Command{Use: "recipe-manager", Short: "Run a program of a recipe in a pod on the hub", Hidden: true}
	cmd.AddCommand(
		newVerbCommand(h, "run", "Run the program that the state requests", RunVerb),
		newVerbCommand(h, "describe", "Record the definition of a recipe", Describe),
	)
	return cmd
}

func newVerbCommand(h pod.Host, name, short string, do func(context.Context, Options) error) *cobra.Command {
	var o Options
	var hub string
	cmd := &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, SilenceUsage: true}
	set := cmd.Flags()
	set.StringVar(&o.Store.Key.Namespace, "namespace", "", "the namespace of the state")
	set.StringVar(&o.Store.Key.Name, "state", "", "the Secret with the state")
	set.StringVar(&o.Token, "token", "", "the token of the run")
	set.StringVar(&o.Recipes, "recipes", RecipesDir, "the folder with the recipes")
	set.StringVar(&o.Recipe, "recipe", "", "the name of the recipe")
	set.StringVar(&o.Version, "version", "", "the required version of the recipe")
	set.StringVar(&o.Secrets, "credentials", "", "the folder with the credentials")
	set.StringVar(&o.Work, "work", "", "an empty working folder")
	set.DurationVar(&o.Limit, "limit", 0, "the time limit of the program")
	set.StringVar(&hub, "hub", "", "the folder with the hub's credentials")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		for flag, value := range map[string]string{
			"namespace": o.Store.Key.Namespace, "state": o.Store.Key.Name, "token": o.Token, "recipe": o.Recipe, "hub": hub, "work": o.Work,
		} {
			if value == "" {
				return fmt.Errorf("--%s is missing", flag)
			}
		}
		api, err := h.Connect(hub)
		if err != nil {
			return err
		}
		o.Store.API, o.Out = api, cmd.OutOrStdout()
		o.StopGrace, o.HeartbeatInterval, o.HeartbeatTimeout = h.Grace, h.HeartbeatInterval, h.HeartbeatTimeout
		o.SaveInterval = h.HeartbeatInterval
		for _, e := range h.Env {
			if name, found := strings.CutPrefix(e, "HOTSPARE_POD="); found {
				o.Pod = name
			}
		}
		if err := prepareEnvironment(h.Env); err != nil {
			return err
		}
		return do(cmd.Context(), o)
	}
	return cmd
}

// prepareEnvironment removes what would give the programs of a recipe access to the hub. They inherit
// the environment of this process.
func prepareEnvironment(env []string) error {
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, "KUBERNETES_") {
			if err := os.Unsetenv(name); err != nil {
				return fmt.Errorf("preparing the environment: %w", err)
			}
		}
	}
	return nil
}
