// Package browser tests the console with real Chromium: see README.md.
//
// It is empty without the build tag browser, so that the other tests need nothing but Go.
package browser
