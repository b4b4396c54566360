package diagnostics

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/internal/redact"
)

// Scrubber removes secrets: values that it knows, and whatever looks like a secret.
type Scrubber struct {
	// known are the values of Secrets, the longest first, so that no value removes a part of a longer one.
	known []string
	// withholds says why not all values are known, so that every text is left out; empty if all are known.
	withholds string
}

// NewWithholdingScrubber returns a Scrubber for a bundle of which the values of Secrets are not known, for a reason. It
// withholds every text, and leaves of objects only what identifies them and the parts of their statuses that are no text.
func NewWithholdingScrubber(reason string) *Scrubber { return &Scrubber{withholds: reason} }

// minKnown is the minimum length of a value to search for: a shorter one would remove parts of ordinary words.
const minKnown = 6

// maxKnown is the maximum length of a value of a Secret that is searched for secrets.
const maxKnown = 256 << 10

// NewScrubber returns a Scrubber that knows the values of Secrets.
func NewScrubber(secrets ...corev1.Secret) *Scrubber {
	found := map[string]bool{}
	for i := range secrets {
		for key, value := range secrets[i].Data {
			if len(value) > maxKnown || slices.Contains(publicKeys, key) {
				continue
			}
			addSecretValues(found, string(value))
		}
	}
	s := &Scrubber{}
	for value := range found {
		s.known = append(s.known, value)
	}
	slices.SortFunc(s.known, func(a, b string) int {
		if d := len(b) - len(a); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return s
}

// publicKeys are keys of Secrets whose values are not secret. A namespace or a user's name would else be removed
// from every line that names it.
var publicKeys = []string{"username", "namespace", "ca.crt", "tls.crt", "service-ca.crt", corev1.SSHAuthPrivateKey + ".pub"}

// addSecretValues adds to found what is secret in a value of a Secret: the value itself if it is one line; the
// values of fields with the name of a secret if it consists of documents, such as a kubeconfig or manifests; else
// every line that contains no space, such as those of a private key, and what a line assigns to the name of a
// secret.
func addSecretValues(found map[string]bool, value string) {
	value = strings.TrimSpace(value)
	addKnown(found, base64.StdEncoding.EncodeToString([]byte(value)))
	isDocument := addDocuments(found, value)
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if !isDocument && (line == value || !strings.ContainsAny(line, " \t")) {
			addKnown(found, line)
		}
		if name, assigned, ok := strings.Cut(line, "="); ok && isSecretName(strings.TrimSpace(name)) {
			addKnown(found, strings.Trim(assigned, " \t\"'"))
		}
	}
}

// addDocuments adds the secret fields of value if it consists of YAML or JSON documents, and reports whether it
// does.
func addDocuments(found map[string]bool, value string) bool {
	documents := strings.Split(value, "\n---")
	for _, one := range documents {
		var document any
		if yaml.Unmarshal([]byte(one), &document) != nil {
			return false
		}
		switch document.(type) {
		case map[string]any, []any:
			addFields(found, "", document)
		case nil: // only a comment
		default:
			return false
		}
	}
	return true
}

func addKnown(found map[string]bool, value string) {
	if len(value) >= minKnown && !strings.HasPrefix(value, "-----") {
		found[value] = true
	}
}

// addFields adds the values of the fields of a document that have the name of a secret, and of the data of
// Secrets. A field may itself be a document, as the pull secret in an install-config.
func addFields(found map[string]bool, key string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for k, e := range v {
			if slices.Contains(publicKeys, k) {
				continue
			}
			if isSecretName(key) || isSecretData(v, k) {
				k = "secret"
			}
			addFields(found, k, e)
		}
	case []any:
		for _, e := range v {
			addFields(found, key, e)
		}
	case string:
		if !isSecretName(key) {
			return
		}
		addSecretValues(found, v)
		if plain, err := base64.StdEncoding.DecodeString(v); err == nil {
			addKnown(found, strings.TrimSpace(string(plain)))
			if _, password, ok := strings.Cut(string(plain), ":"); ok { // user:password, as registries expect it
				addKnown(found, strings.TrimSpace(password))
			}
		}
	}
}

var (
	secretName = regexp.MustCompile(`(?i)(password|passwd|secret|token|credential|access_?key|private_?key|key-data|^auths?$|identitytoken)`)
	// reference matches names of fields that name a Secret and contain no secret.
	reference = regexp.MustCompile(`(?i)(name|namespace|ref|refs|type|kind)$`)
)

// isSecretName reports whether the value of a field of that name is probably a secret.
func isSecretName(key string) bool { return secretName.MatchString(key) && !reference.MatchString(key) }

// isSecretData reports whether the field of an object is the data of a Secret.
func isSecretData(object map[string]any, field string) bool {
	return object["kind"] == "Secret" && (field == "data" || field == "stringData")
}

// leftOut replaces a text that a Scrubber withholds.
const leftOut = "[left out]"

// Text returns text without secrets.
func (s *Scrubber) Text(text string) string {
	if s.withholds != "" {
		return leftOut
	}
	return s.scrubError(text)
}

// scrubError returns the text of an error of a client without secrets. It is not withheld.
func (s *Scrubber) scrubError(text string) string { return redact.Text(s.knownOnly(text)) }

// knownOnly returns text without the known secrets.
func (s *Scrubber) knownOnly(text string) string {
	for _, secret := range s.known {
		text = strings.ReplaceAll(text, secret, redact.Redacted)
	}
	return text
}

// lastApplied is the annotation with a copy of the object, which kubectl apply writes.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Object returns an object as plain JSON values, without secrets: the data of a Secret, fields and environment
// variables with the name of a secret, and known values are replaced. Fields that describe only who wrote the
// object are left out.
func (s *Scrubber) Object(o any) (map[string]any, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encoding an object: %w", err)
	}
	var plain map[string]any
	if err := json.Unmarshal(raw, &plain); err != nil {
		return nil, fmt.Errorf("decoding an object: %w", err)
	}
	if meta, ok := plain["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
		if annotations, ok := meta["annotations"].(map[string]any); ok {
			delete(annotations, lastApplied)
		}
	}
	if s.withholds != "" {
		return withholdTexts(plain), nil
	}
	return s.scrubMap(plain), nil
}

// identityFields are fields of the metadata of an object that identify it.
var identityFields = []string{"name", "namespace", "uid", "generation", "creationTimestamp", "deletionTimestamp"}

// statusFields are fields of statuses whose values are words of an API, names or times, and no text.
var statusFields = []string{
	"type", "status", "reason", "phase", "stage", "powerState", "name", "kind", "lastTransitionTime", "lastProbeTime", "startedAt", "finishedAt",
}

// withholdTexts returns what identifies an object, and its status without texts.
func withholdTexts(object map[string]any) map[string]any {
	out := map[string]any{"apiVersion": object["apiVersion"], "kind": object["kind"]}
	if meta, ok := object["metadata"].(map[string]any); ok {
		kept := map[string]any{}
		for _, field := range identityFields {
			if value, found := meta[field]; found {
				kept[field] = value
			}
		}
		out["metadata"] = kept
	}
	if status := withholdStatus("", object["status"]); status != nil {
		out["status"] = status
	}
	return out
}

// withholdStatus returns the value of a field of a status without texts; nil if nothing remains.
func withholdStatus(key string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if kept := withholdStatus(k, e); kept != nil {
				out[k] = kept
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		var out []any
		for _, e := range v {
			if kept := withholdStatus("", e); kept != nil {
				out = append(out, kept)
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case string:
		if !slices.Contains(statusFields, key) {
			return nil
		}
	}
	return value
}

func (s *Scrubber) scrubValue(key string, value any) any {
	switch v := value.(type) {
	case string:
		if v != "" && isSecretName(key) {
			return redact.Redacted
		}
		return s.Text(v)
	case map[string]any:
		return s.scrubMap(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = s.scrubValue(key, e)
		}
		return out
	default:
		return value
	}
}

func (s *Scrubber) scrubMap(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, e := range m {
		if isSecretData(m, k) {
			out[k] = redact.Redacted
			continue
		}
		out[s.knownOnly(k)] = s.scrubValue(k, e)
	}
	if name, ok := m["name"].(string); ok && isSecretName(name) { // an environment variable
		if _, ok := m["value"].(string); ok {
			out["value"] = redact.Redacted
		}
	}
	return out
}
