package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/runner"
)

// printRecipeLogs prints the saved logs of a recipe's programs and the output of its program logs, and
// returns the number of logs. Both need the data folder of the hub.
func (a commands) printRecipeLogs(ctx context.Context, h *base.Hub, cd *hivev1.ClusterDeployment, q *logOptions) (int, error) {
	folder := runner.Folder(filepath.Join(base.ResolveDataDir(a.Flags.DataDir), runner.FolderName))
	n := 0
	if path := folder.PrepareLogPath(string(cd.UID)); path != "" {
		switch err := a.printLogFile(logFile{"program " + string(recipe.Prepare), path}, q); {
		case err == nil:
			n = 1
		case !errors.Is(err, fs.ErrNotExist):
			return 0, err
		}
	}
	if cd.Spec.ClusterMetadata == nil || cd.Spec.ClusterMetadata.InfraID == "" {
		return n, nil // nothing was created yet
	}
	more, err := a.printClusterRecipeLogs(ctx, h, cd, folder, q)
	return n + more, err
}

// printClusterRecipeLogs prints the logs of a cluster that has an infraID, and returns their number. If the
// program logs cannot run or fails, its error is printed in place of its output.
func (a commands) printClusterRecipeLogs(ctx context.Context, h *base.Hub, cd *hivev1.ClusterDeployment, folder runner.Folder, q *logOptions) (int, error) {
	infraID := cd.Spec.ClusterMetadata.InfraID
	saved, err := folder.ReadCompleteLog(infraID)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the log of cluster %s: %w", cd.Name, err)
	}
	path, err := folder.LogPath(infraID)
	if err != nil {
		return 0, err
	}
	if err := a.writeLogTail("recipe "+cd.Spec.Platform.Exec.Recipe+", "+path, saved, q); err != nil {
		return 1, err
	}
	credentials, err := readRecipeCredentials(ctx, h, cd)
	if err != nil {
		return 1, err
	}
	var out bytes.Buffer
	exists, err := folder.RunLogs(ctx, infraID, credentials, &out)
	switch {
	case ctx.Err() != nil:
		return 1, ctx.Err()
	case err != nil:
		fmt.Fprintf(&out, "[program %s did not succeed: %v]\n", recipe.Logs, err)
	case !exists:
		return 1, nil
	}
	return 2, a.writeLogTail("program "+string(recipe.Logs), out.Bytes(), q)
}

// readRecipeCredentials returns the credentials that the programs of a cluster's recipe receive.
func readRecipeCredentials(ctx context.Context, h *base.Hub, cd *hivev1.ClusterDeployment) (map[string][]byte, error) {
	ref := cd.Spec.Platform.Exec.CredentialsSecretRef
	if ref == nil || ref.Name == "" {
		return nil, nil
	}
	var s corev1.Secret
	if err := h.Get(ctx, client.ObjectKey{Namespace: cd.Namespace, Name: ref.Name}, &s); err != nil {
		return nil, fmt.Errorf("reading the credentials of cluster %s: %w", cd.Name, err)
	}
	return s.Data, nil
}
