package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"

	"github.com/distribution/reference"
	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/imagestore"
	"hotspare.io/hotspare/internal/embedded/imagestore/pullsecret"
	"hotspare.io/hotspare/internal/embedded/imagestore/pullthrough"
	"hotspare.io/hotspare/internal/embedded/imagestore/upstream"
)

const loadLong = `Load container images into the data folder, from which all local clusters on this
computer pull them. The clusters must run containers on their workers
(spec.platform.local.containers: Auto or Always). They find the images at the next pull,
also with imagePullPolicy Always; their pods need no change.

FILE is an archive of docker save or podman save, or an OCI archive; it may be compressed
with gzip. FOLDER contains an OCI image layout. FILE can also be a program that is linked
statically: its image contains only the program, and starts it. Each image must support
the architecture of this computer. An image replaces the one that has the same name.

The names of the images are those in the archive. If it contains none, specify the name
with --name.

NAME:TAG is an image of a registry, such as busybox:1.36, unless a file has that name. It is
pulled with the credentials in --pull-secret, and not with those of a cluster: all clusters
get a loaded image.

With --pool, the new clusters of a pool pull the images before they are ready, so that their
first pods do not wait for them: the images are added to spec.platform.local.images of the
pool. Spare clusters that were created before are replaced.`

func (a commands) loadCommand() *cobra.Command {
	var name, pullSecret, pool string
	cmd := &cobra.Command{
		Use:   "load FILE|FOLDER|NAME:TAG...",
		Short: "Load images from archives, folders, programs or registries",
		Long:  loadLong,
		Example: `  docker save busybox:1.36 -o busybox.tar
  hotspare image load busybox.tar
  hotspare image load nginx:1.29
  hotspare image load ./layout --name registry.example.com/team/app:v1
  hotspare image load ./server --name example.com/server:dev
  hotspare image load nginx:1.29 --pool dev`,
		Args: base.RequireNames("archive or folder"),
	}
	cmd.Flags().StringVar(&name, "name", "", "`name` of the image, instead of the names in the archive")
	cmd.Flags().StringVar(&pullSecret, "pull-secret", "", "`file` with credentials of registries, as a .dockerconfigjson (default: none)")
	cmd.Flags().StringVar(&pool, "pool", "", "`pool` whose new clusters pull the images before they are ready")
	base.MustSucceed(cmd.RegisterFlagCompletionFunc("name", cobra.NoFileCompletions))
	base.MustSucceed(cmd.RegisterFlagCompletionFunc("pool", a.CompletePools))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("name") {
			if name == "" {
				return base.UsageErrorFor(errors.New("--name is empty: specify a name such as busybox:1.36"), cmd)
			}
			if len(args) > 1 {
				return base.UsageErrorFor(fmt.Errorf("--name names one image: specify one archive or folder, not %d", len(args)), cmd)
			}
		}
		credentials, err := readPullSecret(pullSecret)
		if err != nil {
			return err
		}
		o := imagestore.LoadOptions{Name: name}
		if !cmd.Flags().Changed("pool") {
			images, err := a.loadImages(cmd.Context(), args, credentials, o)
			return errors.Join(a.printLoaded(images, ""), err)
		}
		return a.WithHub(func(ctx context.Context, h *base.Hub, _ []string) error {
			if _, err := a.getPool(ctx, h, pool); err != nil {
				return err
			}
			images, err := a.loadImages(ctx, args, credentials, o)
			result, poolErr := a.addToPool(ctx, h, pool, images)
			return errors.Join(a.printLoaded(images, result), err, poolErr)
		})(cmd, nil)
	}
	return cmd
}

// readPullSecret reads the credentials in a file; an empty path stands for none.
func readPullSecret(path string) (pullsecret.Secret, error) {
	if path == "" {
		return pullsecret.Secret{}, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return pullsecret.Secret{}, fmt.Errorf("--pull-secret: %w", err)
	}
	secret, err := pullsecret.Parse(raw)
	if err != nil {
		return pullsecret.Secret{}, fmt.Errorf("--pull-secret: %s: %w", path, err)
	}
	return secret, nil
}

// parseRemoteName returns the image of a registry that an argument names: one that is no file, and has a tag. Without a tag, it
// is rather a file whose name is misspelled.
func parseRemoteName(argument string) (reference.Named, bool) {
	if _, err := os.Lstat(argument); !errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	named, err := reference.ParseNormalizedNamed(argument)
	if err != nil {
		return nil, false
	}
	_, isTagged := named.(reference.Tagged)
	return named, isTagged
}

// newRegistryClient returns a client for the registries that local clusters may use, at all addresses: who runs this command
// can connect to them anyway.
func (a commands) newRegistryClient() (*upstream.Client, error) {
	settings, err := pullthrough.ReadSettings(a.cachePath())
	if err != nil {
		return nil, err
	}
	return upstream.New(upstream.Options{IsAllowed: func(netip.Addr) bool { return true }, Insecure: settings.InsecureRegistries}), nil
}

// loadImages loads all valid archives and images of registries, and returns the errors of the others.
func (a commands) loadImages(ctx context.Context, arguments []string, secret pullsecret.Secret, o imagestore.LoadOptions) ([]imagestore.Image, error) {
	store := a.openStore()
	client, err := a.newRegistryClient()
	if err != nil {
		return nil, err
	}
	load := func(argument string) ([]imagestore.Image, error) {
		named, isRemote := parseRemoteName(argument)
		if !isRemote {
			return store.Load(ctx, argument, o)
		}
		credentials, _ := secret.Find(named)
		return store.Pull(ctx, argument, client, credentials, o)
	}
	var all []imagestore.Image
	var errs []error
	for _, argument := range arguments {
		images, err := load(argument)
		all = append(all, images...)
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

// printLoaded prints the images that were loaded, and for people the result of adding them to a pool.
func (a commands) printLoaded(images []imagestore.Image, result string) error {
	return a.printImages(images, func() error {
		for _, i := range images {
			if _, err := fmt.Fprintf(a.Stdout, "loaded %s (%s, %s)\n", i.Name, formatSize(i.Size), formatPlatforms(i)); err != nil {
				return err
			}
		}
		_, err := io.WriteString(a.Stdout, result)
		return err
	})
}
