package recipe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Definition is everything that hotspare needs to know of a recipe whose folder it cannot read, because
// the folder is in an image.
type Definition struct {
	// Name is the name of the folder.
	Name string `json:"name"`
	// Document is the content of recipe.yaml.
	Document string `json:"document"`
	// Verbs lists the programs in the folder.
	Verbs []Verb `json:"verbs"`
	// ContentVersion is that of the recipe.
	ContentVersion string `json:"contentVersion"`
	// Image is the image that contains the folder, by digest if it is known.
	Image string `json:"image"`
}

const (
	// maxDocument is the maximum size of the recipe.yaml of a Definition, in bytes: the metadata of each
	// cluster contains it.
	maxDocument = 64 << 10
	// maxContentVersion is the maximum size of a ContentVersion in bytes. An annotation contains it.
	maxContentVersion = 256
)

// NewDefinition returns the definition of a recipe that was loaded from its folder.
func NewDefinition(r *Recipe) (Definition, error) {
	document, err := os.ReadFile(filepath.Join(r.Dir, FileName))
	if err != nil {
		return Definition{}, fmt.Errorf("reading recipe %s: %w", r.Name, err)
	}
	version, err := r.ContentVersion()
	if err != nil {
		return Definition{}, err
	}
	d := Definition{Name: filepath.Base(r.Dir), Document: string(document), ContentVersion: version}
	for _, v := range Verbs {
		if r.Has(v) {
			d.Verbs = append(d.Verbs, v)
		}
	}
	return d, nil
}

// LoadDefinition returns the recipe that a definition describes. It validates the definition as Load
// validates a folder, because a program that hotspare does not control may have written it.
func LoadDefinition(d Definition) (*Recipe, error) {
	if len(d.Document) > maxDocument {
		return nil, fmt.Errorf("recipe %s in image %s: %s has %d bytes: use at most %d", d.Name, d.Image, FileName, len(d.Document), maxDocument)
	}
	document, errs, err := parseDocument([]byte(d.Document))
	if err != nil {
		return nil, fmt.Errorf("recipe %s in image %s: reading %s: %w", d.Name, d.Image, FileName, err)
	}
	r, found := newRecipe(document, d.Name)
	r.Definition = &d
	errs = append(errs, found...)
	for _, v := range d.Verbs {
		if !slices.Contains(Verbs, v) {
			errs = append(errs, fmt.Errorf("%q is not a verb", string(v)))
		}
		r.verbs[v] = true
	}
	errs = append(errs, checkVerbs(r.verbs)...)
	if d.ContentVersion == "" || len(d.ContentVersion) > maxContentVersion {
		errs = append(errs, fmt.Errorf("%s: version and hash have %d bytes together: use at least 1 and at most %d", FileName, len(d.ContentVersion), maxContentVersion))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("recipe %s in image %s is invalid:\n%w", d.Name, d.Image, err)
	}
	return r, nil
}
