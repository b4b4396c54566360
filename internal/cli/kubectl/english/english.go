// Package english keeps kubectl's packages from reading their translations, which every start of a program that
// contains them pays for with 33 ms. kubectl speaks English here, as everything else does.
//
// It works by being imported: Go initializes packages that are ready by their import path, and that of this one comes
// before that of kubectl.
package english

import "k8s.io/kubectl/pkg/util/i18n"

var errSet = i18n.SetLoadTranslationsFunc(func() error { return nil })

// Err returns why the translations were read all the same; nil if they were not.
func Err() error { return errSet }
