package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// measureErrors measures what becomes of errors: a block of an `if err != nil` that logs the error
// and returns it reports it twice.
func (t *tree) measureErrors() []figure {
	returns, both, gerund, failed := 0, 0, 0, 0
	var twice []string
	for _, f := range t.files {
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			switch x := node.(type) {
			case *ast.IfStmt:
				if !checksError(x.Cond) || !returnsError(x.Body) {
					return true
				}
				returns++
				if logsError(x.Body) {
					both++
					twice = append(twice, t.formatPosition(f, x))
				}
			case *ast.CallExpr:
				switch text := errorCallText(x); {
				case failing.MatchString(text):
					failed++
				case doing.MatchString(text):
					gerund++
				}
			}
			return true
		})
	}
	return []figure{
		{name: "errors that are logged and returned", value: formatShare(both, returns), examples: twice},
		{name: `error texts with a gerund / "failed to", "unable to", "error"`, value: fmt.Sprintf("%d / %d", gerund, failed)},
	}
}

var (
	doing   = regexp.MustCompile(`^[a-z]+ing `)
	failing = regexp.MustCompile(`(?i)^(failed to|unable to|could not|cannot|error )`)
)

// errorCallText is the text of a call of fmt.Errorf or errors.New; empty for another.
func errorCallText(call *ast.CallExpr) string {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return ""
	}
	of, ok := fun.X.(*ast.Ident)
	if !ok || of.Name+"."+fun.Sel.Name != "fmt.Errorf" && of.Name+"."+fun.Sel.Name != "errors.New" {
		return ""
	}
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return text
}

// checksError reports whether a condition looks whether err is nil.
func checksError(cond ast.Expr) bool {
	found := false
	ast.Inspect(cond, func(node ast.Node) bool {
		if x, ok := node.(*ast.BinaryExpr); ok && x.Op == token.NEQ {
			left, isName := x.X.(*ast.Ident)
			right, isNil := x.Y.(*ast.Ident)
			found = found || isName && isNil && strings.HasPrefix(strings.ToLower(left.Name), "err") && right.Name == "nil"
		}
		return true
	})
	return found
}

// returnsError reports whether the last statement of a block returns something that
// mentions err.
func returnsError(body *ast.BlockStmt) bool {
	if len(body.List) == 0 {
		return false
	}
	last, ok := body.List[len(body.List)-1].(*ast.ReturnStmt)
	if !ok {
		return false
	}
	for _, result := range last.Results {
		if mentionsError(result) {
			return true
		}
	}
	return false
}

// logsError reports whether a statement of a block calls a logger's method with err.
func logsError(body *ast.BlockStmt) bool {
	for _, statement := range body.List {
		expression, ok := statement.(*ast.ExprStmt)
		if !ok {
			continue
		}
		call, ok := expression.X.(*ast.CallExpr)
		if !ok {
			continue
		}
		if fun, ok := call.Fun.(*ast.SelectorExpr); ok && logging.MatchString(fun.Sel.Name) && mentionsError(expression) {
			return true
		}
	}
	return false
}

var logging = regexp.MustCompile(`^(Error|Errorf|ErrorS|Info|Infof|Warn|Warning|Warnf|Warningf|Print|Printf|Println|Debugf?)$`)

func mentionsError(node ast.Node) bool {
	found := false
	ast.Inspect(node, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && strings.HasPrefix(strings.ToLower(id.Name), "err") && id.Name != "errors" {
			found = true
		}
		return true
	})
	return found
}

// habitCounts are counts of what a reader stumbles over.
type habitCounts struct {
	panics, backgrounds, untyped, elses, variables, exported, todos int
	undocumented                                                    []string
}

// measureHabits counts calls, types and declarations.
func (t *tree) measureHabits() []figure {
	var h habitCounts
	code := 0
	for _, f := range t.files {
		code += f.code
		for _, group := range f.syntax.Comments {
			if text := group.Text(); strings.Contains(text, "TODO") || strings.Contains(text, "FIXME") {
				h.todos++
			}
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool { h.countNode(node); return true })
		for _, d := range f.syntax.Decls {
			h.countDeclaration(t, f, d)
		}
	}
	functions := max(1, len(t.listFunctions()))
	return []figure{
		{name: "exported names without a comment", value: formatShare(len(h.undocumented), h.exported), examples: h.undocumented},
		{name: "panics / context.Background and TODO, per 1,000 lines", value: formatPerThousand(h.panics, code) + " / " + formatPerThousand(h.backgrounds, code)},
		{name: "package variables / any, per 1,000 lines", value: formatPerThousand(h.variables, code) + " / " + formatPerThousand(h.untyped, code)},
		{name: "else per 100 functions", value: fmt.Sprintf("%.1f", 100*float64(h.elses)/float64(functions))},
		{name: "comments with TODO or FIXME", value: fmt.Sprint(h.todos)},
	}
}

func (h *habitCounts) countNode(node ast.Node) {
	switch x := node.(type) {
	case *ast.CallExpr:
		switch calledName(x) {
		case "panic":
			h.panics++
		case "context.Background", "context.TODO":
			h.backgrounds++
		}
	case *ast.IfStmt:
		if x.Else != nil {
			h.elses++
		}
	case *ast.Ident:
		if x.Name == "any" {
			h.untyped++
		}
	case *ast.InterfaceType:
		if x.Methods.NumFields() == 0 {
			h.untyped++
		}
	}
}

func (h *habitCounts) countDeclaration(t *tree, f *file, d ast.Decl) {
	names, documented, isVar := declaredNames(d)
	if isVar {
		h.variables += len(names)
	}
	for _, name := range names {
		if !ast.IsExported(name) || f.pkg == "main" {
			continue
		}
		h.exported++
		if !documented {
			h.undocumented = append(h.undocumented, t.formatPosition(f, d)+"  "+name)
		}
	}
}

func calledName(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		if of, ok := fun.X.(*ast.Ident); ok {
			return of.Name + "." + fun.Sel.Name
		}
	}
	return ""
}

// declaredNames returns the names that a declaration of a package introduces. Those of a group
// are documented by the group's comment, or by one of their own.
func declaredNames(d ast.Decl) (names []string, documented, isVar bool) {
	switch x := d.(type) {
	case *ast.FuncDecl:
		if x.Recv != nil && !ast.IsExported(receiverTypeName(x)) {
			return nil, true, false
		}
		return []string{x.Name.Name}, x.Doc != nil, false
	case *ast.GenDecl:
		documented = x.Doc != nil
		for _, spec := range x.Specs {
			more, commented := specifiedNames(spec)
			names, documented = append(names, more...), documented || commented
		}
		return names, documented, x.Tok == token.VAR
	}
	return nil, true, false
}

func specifiedNames(spec ast.Spec) (names []string, documented bool) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		return []string{s.Name.Name}, s.Doc != nil || s.Comment != nil
	case *ast.ValueSpec:
		for _, id := range s.Names {
			if id.Name != "_" {
				names = append(names, id.Name)
			}
		}
		return names, s.Doc != nil || s.Comment != nil
	}
	return nil, false
}

func receiverTypeName(f *ast.FuncDecl) string {
	name := ""
	ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return true
	})
	return name
}
