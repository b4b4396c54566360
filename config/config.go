// Package config contains the manifests that a hub needs before hotspare's
// controllers can run on it: CRDs, admission policies and RBAC. The CRDs and
// the role are generated (make generate).
package config

import "embed"

// Manifests are the files, by folder.
//
//go:embed crd/*.yaml admission/*.yaml rbac/*.yaml
var Manifests embed.FS
