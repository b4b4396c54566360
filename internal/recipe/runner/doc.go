// Package runner runs the programs of recipes for the clusters of platform exec.
//
// The orchestration in internal/install/exec and internal/cloud/exec uses only the interfaces Runner
// and Store, so that it does not depend on where a program runs. Processes, Folder and Catalog implement
// them with processes of this computer and a folder for each cluster; package jobs implements them with
// Jobs and Secrets of a hub.
package runner
