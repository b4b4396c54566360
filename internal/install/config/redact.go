package config

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// secretKeys are keys that contain secrets anywhere in an install-config, in upper or lower case:
// installers do not distinguish case. In a pull secret the keys are auth and the tokens.
var secretKeys = []string{"auth", "identitytoken", "password", "pullsecret", "registrytoken"}

// redacted replaces a secret.
const redacted = "REDACTED"

// Redact replaces the secrets of an install-config in a text that is meant for people. Installers
// scrub their own logs; this is a second pass.
func Redact(text string, raw []byte) string {
	doc, err := parseDocument(raw)
	if err != nil {
		return text
	}
	return redactSecrets(text, findSecrets(map[string]any(doc)))
}

// redactSecrets replaces the secrets in a text: verbatim, as %q writes them, and as JSON writes
// them.
func redactSecrets(text string, secrets []string) string {
	for _, secret := range slices.Clone(secrets) {
		quoted := strconv.Quote(secret)
		secrets = append(secrets, quoted[1:len(quoted)-1])
		if encoded, err := json.Marshal(secret); err == nil {
			secrets = append(secrets, string(encoded[1:len(encoded)-1]))
		}
	}
	// Replace the longest first; otherwise the rest of a secret that contains another would remain.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, redacted)
	}
	return text
}

func findSecrets(v any) []string {
	var found []string
	switch node := v.(type) {
	case string:
		found = findMisplacedSecrets(node)
	case []any:
		for _, item := range node {
			found = append(found, findSecrets(item)...)
		}
	case map[string]any:
		for key, item := range node {
			if text, ok := scalarText(item); ok && slices.Contains(secretKeys, strings.ToLower(key)) {
				found = append(found, expandSecretForms(text)...)
			} else {
				found = append(found, findSecrets(item)...)
			}
		}
	}
	return found
}

// scalarText returns a secret as text: a password can be written as a number.
func scalarText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	}
	return "", false
}

// expandSecretForms returns a secret together with the secrets inside it: a pull secret is JSON
// with one auth per registry, which is a user and a password in base64.
func expandSecretForms(secret string) []string {
	if strings.TrimSpace(secret) == "" {
		return nil
	}
	found := []string{secret}
	if trimmed := strings.TrimSpace(secret); trimmed != secret {
		found = append(found, trimmed)
	}
	found = append(found, splitLongLines(secret)...)
	if plain, err := base64.StdEncoding.DecodeString(secret); err == nil && strings.Contains(string(plain), ":") {
		found = append(found, string(plain))
	}
	var inner map[string]any
	if json.Unmarshal([]byte(secret), &inner) == nil {
		found = append(found, findSecrets(inner)...)
	}
	return found
}

// findMisplacedSecrets returns secrets in places that are not meant for them: the account in the
// URL of a proxy, and a private key in place of a public one.
func findMisplacedSecrets(text string) []string {
	if strings.Contains(text, privateKey) {
		return splitPrivateKey(text)
	}
	if !strings.Contains(text, "@") {
		return nil
	}
	at, err := url.Parse(strings.TrimSpace(text))
	if err != nil || at.User == nil {
		return nil
	}
	password, ok := at.User.Password()
	if !ok || password == "" {
		return nil
	}
	found := []string{password, at.User.String()}
	if _, written, ok := strings.Cut(at.User.String(), ":"); ok {
		found = append(found, written)
	}
	return found
}

// splitPrivateKey returns a private key, and its lines without the text around it.
func splitPrivateKey(text string) []string {
	found := splitLongLines(text)
	return append(slices.DeleteFunc(found, func(line string) bool { return strings.HasPrefix(line, "-----") }), text)
}

// splitLongLines returns the lines of a multi-line secret that are long enough to be sensitive: a
// text may quote one line, or indent the lines.
func splitLongLines(secret string) []string {
	if !strings.Contains(strings.TrimSpace(secret), "\n") {
		return nil
	}
	var found []string
	for line := range strings.Lines(secret) {
		if line = strings.TrimSpace(line); len(line) > 3 {
			found = append(found, line)
		}
	}
	return found
}
