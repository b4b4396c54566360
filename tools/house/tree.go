package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// tree is the code of a project.
type tree struct {
	fset *token.FileSet
	// files are those of programs and packages, tests those of tests; both without
	// generated ones.
	files, tests []*file
}

// file is one parsed file.
type file struct {
	path, folder, pkg string
	syntax            *ast.File
	// lines counts all lines; code those with something other than comments and blanks.
	lines, code, comments int
}

// generated matches the line by which a generated file says so (https://go.dev/s/generatedcode).
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// skipped are folders without code of the project.
var skipped = []string{"vendor", "testdata", "node_modules", "third_party", ".git", "bin"}

// readTree parses all Go files below root.
func readTree(root string) (*tree, error) {
	t := &tree{fset: token.NewFileSet()}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (slices.Contains(skipped, d.Name()) || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		return t.parseAndAddFile(root, path)
	})
	return t, err
}

func (t *tree) parseAndAddFile(root, path string) error {
	source, err := os.ReadFile(path) //nolint:gosec // the caller chooses the path
	if err != nil {
		return err
	}
	if generated.Match(source) {
		return nil
	}
	syntax, err := parser.ParseFile(t.fset, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parsing: %w", err)
	}
	name, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	f := &file{path: name, folder: filepath.Dir(name), pkg: syntax.Name.Name, syntax: syntax}
	f.countLines(t.fset, source)
	if strings.HasSuffix(path, "_test.go") || isTestCode(name) {
		t.tests = append(t.tests, f)
	} else {
		t.files = append(t.files, f)
	}
	return nil
}

// isTestCode reports whether a file that is not a test itself serves tests only.
func isTestCode(path string) bool {
	first, _, _ := strings.Cut(filepath.ToSlash(path), "/")
	return first == "test" || strings.HasSuffix(filepath.Dir(path), "test")
}

// countLines counts the lines of source: those that have a token are code, others that
// have a comment are comments.
func (f *file) countLines(fset *token.FileSet, source []byte) {
	f.lines = bytes.Count(source, []byte("\n"))
	comment := map[int]bool{}
	for _, group := range f.syntax.Comments {
		for _, c := range group.List {
			for line := fset.Position(c.Pos()).Line; line <= fset.Position(c.End()).Line; line++ {
				comment[line] = true
			}
		}
	}
	for i, line := range bytes.Split(source, []byte("\n")) {
		text := bytes.TrimSpace(line)
		switch {
		case len(text) == 0:
		case comment[i+1] && (bytes.HasPrefix(text, []byte("//")) || bytes.HasPrefix(text, []byte("/*")) || bytes.HasPrefix(text, []byte("*"))):
			f.comments++
		default:
			f.code++
		}
	}
}

// function is a function or method.
type function struct {
	file *file
	decl *ast.FuncDecl
	// lines is its length with the line of its name and the closing brace.
	lines, complexity int
}

// listFunctions are all functions of programs and packages.
func (t *tree) listFunctions() []function {
	var out []function
	for _, f := range t.files {
		for _, d := range f.syntax.Decls {
			if decl, ok := d.(*ast.FuncDecl); ok && decl.Body != nil {
				lines := t.fset.Position(decl.End()).Line - t.fset.Position(decl.Pos()).Line + 1
				out = append(out, function{f, decl, lines, complexityOf(decl)})
			}
		}
	}
	return out
}

// complexityOf is McCabe's: one, and one more for each branch.
func complexityOf(decl *ast.FuncDecl) int {
	n := 1
	ast.Inspect(decl, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if x.List != nil {
				n++
			}
		case *ast.CommClause:
			if x.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// formatPosition is where a node is, for people.
func (t *tree) formatPosition(f *file, node ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, t.fset.Position(node.Pos()).Line)
}
