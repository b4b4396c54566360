package up

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	diagnosticscontroller "hotspare.io/hotspare/internal/controller/diagnostics"
	"hotspare.io/hotspare/internal/diagnostics/collect"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/manager"
	"hotspare.io/hotspare/internal/recipe/runner"
	"hotspare.io/hotspare/internal/redact"
)

// openBundleStore returns the store of bundles that the options name, or the folder in the data folder.
func (o Options) openBundleStore(ctx context.Context) (diagnosticscontroller.Store, error) {
	place := manager.DiagnosticsPlace{Folder: DiagnosticsPath(o.Dir)}
	if o.Diagnostics != nil {
		place = *o.Diagnostics
	}
	store, err := place.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("--diagnostics: %w", err)
	}
	return store, nil
}

// diagnosedLines is the number of lines of each log in a bundle of diagnostics.
const diagnosedLines = 2000

// newLogFinder returns a function that finds the logs of a cluster in the data folder: of the installer and the
// machines of a local cluster, and of the programs of a recipe.
func newLogFinder(dir string) func(context.Context, *hivev1.ClusterDeployment) ([]collect.Log, error) {
	return func(_ context.Context, cd *hivev1.ClusterDeployment) ([]collect.Log, error) {
		var f logFinder
		if cd.Spec.Platform.Exec != nil {
			recipes := runner.Folder(filepath.Join(dir, runner.FolderName))
			f.add("prepare.log", recipes.PrepareLogPath(string(cd.UID)))
			if infraID := infraIDOf(cd); infraID != "" {
				path, err := recipes.LogPath(infraID)
				f.errs = append(f.errs, err)
				f.add("recipe.log", path)
			}
		}
		if infraID := infraIDOf(cd); infraID != "" && cd.Spec.Platform.Local != nil {
			f.add("install.log", filepath.Join(dir, "installs", infraID, ".openshift_install.log"))
			machines, err := filepath.Glob(filepath.Join(dir, "machines", infraID, "*"))
			f.errs = append(f.errs, err)
			for _, m := range machines {
				f.add("machine-"+filepath.Base(m)+".log", machine.LogPath(m))
			}
		}
		return f.logs, errors.Join(f.errs...)
	}
}

// infraIDOf returns the infraID of a cluster; "" if it has none that is the name of a folder. Owners of a cluster
// can write it.
func infraIDOf(cd *hivev1.ClusterDeployment) string {
	if cd.Spec.ClusterMetadata == nil {
		return ""
	}
	id := cd.Spec.ClusterMetadata.InfraID
	if !filepath.IsLocal(id) || filepath.Base(id) != id || id == "." || id[0] == '.' {
		return ""
	}
	return id
}

// logFinder collects logs that exist.
type logFinder struct {
	logs []collect.Log
	errs []error
}

// add adds the end of a file, if there is one.
func (f *logFinder) add(name, path string) {
	if path == "" {
		return
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", name)
	}
	var text string
	if err == nil {
		text, err = redact.ReadUnscrubbedTail(path, diagnosedLines)
	}
	if err != nil {
		f.errs = append(f.errs, err)
		return
	}
	f.logs = append(f.logs, collect.Log{Name: name, Text: text})
}
