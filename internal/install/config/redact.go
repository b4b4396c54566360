package config

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// secretKeys hold secrets wherever they stand in an install-config. In a pull
// secret, auth does.
var secretKeys = []string{"auth", "password", "pullSecret"}

// redacted replaces a secret.
const redacted = "REDACTED"

// Redact replaces the secrets of an install-config in a text that is meant for
// people. Installers scrub their own logs; this is the second look.
func Redact(text string, raw []byte) string {
	doc, err := parse(raw)
	if err != nil {
		return text
	}
	return conceal(text, secretsIn(map[string]any(doc)))
}

// conceal replaces the secrets in a text, as they are and as %q writes them.
func conceal(text string, secrets []string) string {
	for _, secret := range slices.Clone(secrets) {
		quoted := strconv.Quote(secret)
		secrets = append(secrets, quoted[1:len(quoted)-1])
	}
	// The longest first, or the rest of one that contains another would stay.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, redacted)
	}
	return text
}

func secretsIn(v any) []string {
	var found []string
	switch node := v.(type) {
	case []any:
		for _, item := range node {
			found = append(found, secretsIn(item)...)
		}
	case map[string]any:
		for key, item := range node {
			if text, ok := item.(string); ok && slices.Contains(secretKeys, key) {
				found = append(found, nested(text)...)
			} else {
				found = append(found, secretsIn(item)...)
			}
		}
	}
	return found
}

// nested returns a secret together with those inside it: a pull secret is JSON
// with one auth a registry.
func nested(secret string) []string {
	if strings.TrimSpace(secret) == "" {
		return nil
	}
	found := []string{secret}
	var inner map[string]any
	if json.Unmarshal([]byte(secret), &inner) == nil {
		found = append(found, secretsIn(inner)...)
	}
	return found
}
