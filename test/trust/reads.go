package trust

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// actingPackages are the packages that act with the permissions of the manager, of an installer's
// Job or of a cloud account. The CLI and the console act with those of their user.
var actingPackages = []string{
	"./internal/controller/...", "./internal/claim/...", "./internal/claimpolicy/...", "./internal/claimset/...", "./internal/heartbeat/...",
	"./internal/install/...", "./internal/cloud/...", "./internal/recipe/...", "./internal/rbac/...",
	"./internal/rbac/grant/...", "./internal/ownership/...", "./internal/pool/facts/...", "./internal/provision/...",
	"./internal/power/...", "./internal/inventory/...", "./internal/machinepool/...", "./internal/remote/...",
	"./internal/sizing/...", "./internal/gate/...", "./internal/bootstrap/...",
	"./internal/fleet/dataplane/...", "./internal/fleet/instance/...", "./internal/fleet/scaling/...", "./internal/fleet/facts/...", "./internal/platform/...",
}

const apiPackage = "hotspare.io/hotspare/api/"

// ListReads returns what the acting packages read of the API's objects, sorted and without
// duplicates: fields as Type.Field, and labels, annotations and finalizers by the name of their
// constant.
func ListReads(root string) ([]string, error) {
	cfg := &packages.Config{
		Mode: packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile,
		Dir:  root,
		// The same setting as in make build, so that the build cache can be reused.
		Env: append(os.Environ(), "CGO_ENABLED=0"),
	}
	loaded, err := packages.Load(cfg, actingPackages...)
	if err != nil {
		return nil, fmt.Errorf("loading packages: %w", err)
	}
	found := map[string]bool{}
	var faults []error
	for _, p := range loaded {
		for _, e := range p.Errors {
			faults = append(faults, fmt.Errorf("loading %s: %w", p.PkgPath, e))
		}
		for _, file := range p.Syntax {
			collectReads(file, p.TypesInfo, found)
		}
	}
	out := make([]string, 0, len(found))
	for name := range found {
		out = append(out, name)
	}
	slices.Sort(out)
	return out, errors.Join(faults...)
}

// collectReads adds to found what a file reads. The left side of an assignment is a write, not a
// read.
func collectReads(file *ast.File, info *types.Info, found map[string]bool) {
	written := map[ast.Expr]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok == token.ASSIGN {
				for _, left := range n.Lhs {
					written[left] = true
				}
			}
		case *ast.SelectorExpr:
			if name := apiFieldName(n, info); name != "" && !written[n] {
				found[name] = true
			}
			if c, ok := info.Uses[n.Sel].(*types.Const); ok && isMetadataKey(c) {
				found[c.Name()] = true
			}
		}
		return true
	})
}

// apiFieldName returns Type.Field if a selector selects a field that package api declares.
func apiFieldName(n *ast.SelectorExpr, info *types.Info) string {
	s := info.Selections[n]
	if s == nil || s.Kind() != types.FieldVal || s.Obj().Pkg() == nil || !strings.HasPrefix(s.Obj().Pkg().Path(), apiPackage) {
		return ""
	}
	recv := s.Recv()
	if p, ok := recv.(*types.Pointer); ok {
		recv = p.Elem()
	}
	named, ok := recv.(*types.Named)
	if !ok {
		return ""
	}
	return named.Obj().Name() + "." + s.Obj().Name()
}

// isMetadataKey reports whether a constant of the API names a label, an annotation or a finalizer.
func isMetadataKey(c *types.Const) bool {
	if c.Pkg() == nil || !strings.HasPrefix(c.Pkg().Path(), apiPackage) {
		return false
	}
	for _, prefix := range []string{"Label", "Annotation", "Finalizer"} {
		if strings.HasPrefix(c.Name(), prefix) {
			return true
		}
	}
	return false
}
