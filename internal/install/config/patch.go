package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

// maxSize bounds the size in bytes of a patched document: a Secret cannot contain more. It also
// keeps repeated copy operations from exhausting the memory.
const maxSize = 1 << 20

// ApplyPatches applies a customization's patches to an install-config, in order (RFC 6902), and
// validates the result. It keeps unknown keys. With no patches it only validates.
//
// The leading slash of a path is optional. A path cannot point to the whole document, and its
// parents must exist. valueJSON takes precedence over value. An absent value and a null value count
// as no value, since the API cannot distinguish them, and add, replace and test require a value;
// for a null write valueJSON: "null".
//
// The error is fault.Denied, names the patch and the remedy, and quotes no secrets, neither of the
// document nor of the patches.
func ApplyPatches(raw []byte, patches []hivev1.PatchEntity) ([]byte, error) {
	doc, err := parseDocument(raw)
	if err != nil {
		return nil, err
	}
	if len(patches) == 0 {
		return raw, Validate(raw)
	}
	p := patcher{field: "installConfigPatches", doc: doc}
	if err := p.applyPatches(patches); err != nil {
		return nil, err
	}
	out, ok := p.doc.encodeYAML()
	if !ok {
		return nil, newUnwritableError("installConfigPatches: the result")
	}
	if err := Validate(out); err != nil {
		return nil, fault.NewDenied("with installConfigPatches applied: %s", redactSecrets(err.Error(), p.secrets))
	}
	return out, nil
}

// ClusterIdentity returns the name that an install-config gives its cluster: metadata.name, which
// is a DNS label, and baseDomain, a DNS domain. If either is invalid, the error is fault.Denied, as
// from Validate.
func ClusterIdentity(raw []byte) (name, baseDomain string, err error) {
	doc, err := parseDocument(raw)
	if err != nil {
		return "", "", err
	}
	var found problems
	found.checkClusterNames(doc)
	if err := found.deniedError(); err != nil {
		return "", "", err
	}
	metadata, _ := doc["metadata"].(map[string]any)
	name, _ = metadata["name"].(string)
	baseDomain, _ = doc["baseDomain"].(string)
	return name, baseDomain, nil
}

// patcher applies patches to a document.
type patcher struct {
	field   string // the field that contains the patches
	doc     document
	secrets []string // all secrets that the document has contained: a patch can move them
}

// applyPatches applies the patches in order. If one fails, the document keeps the state before that
// patch.
func (p *patcher) applyPatches(patches []hivev1.PatchEntity) error {
	p.recordSecrets()
	for i, patch := range patches {
		place := fmt.Sprintf("%s[%d]", p.field, i)
		o, err := parsePatch(patch)
		if err != nil {
			return fault.NewDenied("%s: %w", place, err)
		}
		after, err := o.applyToDocument(p.doc)
		if err != nil {
			return fault.NewDenied("%s: %s %s: %w", place, o.verb, o.path, err)
		}
		p.doc = after
		p.recordSecrets()
	}
	return nil
}

// recordSecrets adds the current secrets of the document.
func (p *patcher) recordSecrets() {
	for _, secret := range findSecrets(map[string]any(p.doc)) {
		if !slices.Contains(p.secrets, secret) {
			p.secrets = append(p.secrets, secret)
		}
	}
}

// operation is a well-formed patch.
type operation struct {
	verb  string
	path  pointer
	from  pointer // for move and copy
	value any     // for add, replace and test
}

// parsePatch parses a patch. The error names the field that is wrong.
func parsePatch(patch hivev1.PatchEntity) (operation, error) {
	o := operation{verb: patch.Op}
	var err error
	switch o.verb {
	case "remove":
	case "add", "replace", "test":
		o.value, err = parsePatchValue(patch)
	case "move", "copy":
		if o.from, err = parsePointer(patch.From); err != nil {
			err = fmt.Errorf("from: %w", err)
		}
	default:
		return o, fmt.Errorf("op: %q is not an operation: use add, remove, replace, move, copy or test", patch.Op)
	}
	if err != nil {
		return o, err
	}
	if o.path, err = parsePointer(patch.Path); err != nil {
		return o, fmt.Errorf("path: %w", err)
	}
	return o, nil
}

var errNoValue = errors.New(`value: is missing: set value or valueJSON; for a null set valueJSON to "null"`)

func parsePatchValue(patch hivev1.PatchEntity) (any, error) {
	if patch.ValueJSON != "" {
		value, err := decodeJSONValue([]byte(patch.ValueJSON))
		if err != nil {
			return nil, errors.New(`valueJSON: is not valid JSON: write a string in quotes, as "\"text\"", or use value`)
		}
		return value, nil
	}
	if patch.Value == nil || len(patch.Value.Raw) == 0 {
		return nil, errNoValue
	}
	value, err := decodeJSONValue(patch.Value.Raw)
	switch {
	case err != nil:
		return nil, errors.New("value: is not valid JSON")
	case value == nil:
		return nil, errNoValue
	}
	return value, nil
}

// decodeJSONValue reads JSON; numbers are json.Number.
func decodeJSONValue(raw []byte) (any, error) {
	if !json.Valid(raw) {
		return nil, errors.New("decoding JSON: invalid")
	}
	var value any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err := d.Decode(&value)
	return value, err
}

// applyToDocument returns the document with the operation applied; doc is not modified.
func (o operation) applyToDocument(doc document) (document, error) {
	if err := o.checkApplicable(doc); err != nil {
		return nil, err
	}
	if o.verb == "test" {
		return doc, nil
	}
	before, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	patch, err := o.encodeJSONPatch()
	if err != nil {
		return nil, err
	}
	after, err := patch.ApplyWithOptions(before, &jsonpatch.ApplyOptions{AccumulatedCopySizeLimit: maxSize})
	if err != nil {
		// The library's error text is not for users. Only one case passes checkApplicable and fails here:
		// a move removes its own target, because the target is below the source or at the end of the same
		// list.
		return nil, fmt.Errorf("the path no longer exists after from, %s, is removed: correct path or from", o.from)
	}
	if len(after) > max(maxSize, len(before)) {
		return nil, fmt.Errorf("makes the document larger than %d bytes, the limit of a Secret: copy or add less", maxSize)
	}
	tree, err := decodeJSONValue(after)
	if err != nil {
		return nil, errors.New("nests the document too deeply: copy less")
	}
	mapping, _ := tree.(map[string]any) // no path points to the whole document
	return mapping, nil
}

// checkApplicable returns an error if the operation does not apply to the document.
//
// The library detects that too, but its messages are less clear. The test operation is implemented
// only here: the library's panics on a list with a null, and treats 1.0 and 1 as different numbers.
func (o operation) checkApplicable(doc document) error {
	tree := any(map[string]any(doc))
	switch o.verb {
	case "add":
		return withRemedy(o.path.checkAddable(tree), "correct the path, or first add its parent")
	case "move", "copy":
		if _, err := o.from.findValue(tree); err != nil {
			return fmt.Errorf("from %s: %w: correct it", o.from, err)
		}
		return withRemedy(o.path.checkAddable(tree), "correct the path, or first add its parent")
	}
	have, err := o.path.findValue(tree)
	switch {
	case err != nil && o.verb == "replace":
		return withRemedy(err, "correct the path, or use add")
	case err != nil:
		return withRemedy(err, "correct the path, or remove the patch")
	case o.verb == "test" && !equalJSON(have, o.value):
		return errors.New("the test fails, because the value differs: correct the value, or remove the patch")
	}
	return nil
}

func withRemedy(err error, remedy string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", err, remedy)
}

// encodeJSONPatch returns the operation in the library's format.
func (o operation) encodeJSONPatch() (jsonpatch.Patch, error) {
	fields := map[string]any{"op": o.verb, "path": o.path.String()}
	switch o.verb {
	case "add", "replace":
		fields["value"] = o.value
	case "move", "copy":
		fields["from"] = o.from.String()
	}
	raw, err := json.Marshal([]any{fields})
	if err != nil {
		return nil, fmt.Errorf("encoding a patch: %w", err)
	}
	patch, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		return nil, fmt.Errorf("decoding a patch: %w", err)
	}
	return patch, nil
}
