package pod

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// accountPlatforms are the platforms whose metadata.json repeats the account, in these fields.
var (
	accountPlatforms = []string{"vsphere", "nutanix"}
	accountFields    = []string{"username", "password"}
)

// withoutCredentials returns a metadata.json without accounts.
func withoutCredentials(raw []byte) ([]byte, error) {
	return editMetadata(raw, func(section map[string]any) {
		for _, field := range accountFields {
			delete(section, field)
		}
	})
}

// withCredentials returns a metadata.json with the account from dir. Without an account there, it
// is unchanged.
func withCredentials(raw []byte, dir string) ([]byte, error) {
	account := map[string]string{}
	for _, field := range accountFields {
		value, err := os.ReadFile(filepath.Join(dir, field))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the credentials: %w", err)
		}
		account[field] = strings.TrimSpace(string(value))
	}
	return editMetadata(raw, func(section map[string]any) {
		for field, value := range account {
			if _, there := section[field]; !there {
				section[field] = value
			}
		}
	})
}

// editMetadata changes the sections of the platforms that have an account, and the vCenters in
// them; everything else stays byte for byte.
func editMetadata(raw []byte, edit func(section map[string]any)) ([]byte, error) {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("reading metadata.json: %w", err)
	}
	changed := false
	for _, platform := range accountPlatforms {
		var section map[string]any
		if json.Unmarshal(doc[platform], &section) != nil || section == nil {
			continue
		}
		edit(section)
		servers, _ := section["vcenters"].([]any)
		for _, server := range servers {
			if one, ok := server.(map[string]any); ok {
				edit(one)
			}
		}
		text, err := json.Marshal(section)
		if err != nil {
			return nil, fmt.Errorf("writing metadata.json: %w", err)
		}
		doc[platform], changed = text, true
	}
	if !changed {
		return raw, nil
	}
	return json.Marshal(doc)
}

// AWSConfig is the key of a Secret that contains a complete AWS configuration file.
const AWSConfig = "aws_config"

// credentialsEnv returns the environment of an installer. If the credentials are an AWS
// configuration file, the environment contains only that file and no other credentials, because the
// SDK prefers credentials in the environment.
func credentialsEnv(env []string, credentials string) ([]string, error) {
	if credentials == "" {
		return env, nil
	}
	file := filepath.Join(credentials, AWSConfig)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return env, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading the credentials: %w", err)
	}
	keys := []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}
	env = slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains(keys, name)
	})
	// Profiles may be in either file. Without the last variable the older SDK reads only the other
	// file.
	return append(env, "AWS_CONFIG_FILE="+file, "AWS_SHARED_CREDENTIALS_FILE="+file, "AWS_SDK_LOAD_CONFIG=1"), nil
}

// secretNamePattern matches names of keys and variables that contain secrets.
var secretNamePattern = regexp.MustCompile(`(?i)secret|password|token|key|credential`)

// collectSecrets returns the secrets that the installer receives, so that they can be removed from
// its log.
func collectSecrets(env []string, dir string) ([]string, error) {
	var found []string
	for _, e := range env {
		if name, value, _ := strings.Cut(e, "="); secretNamePattern.MatchString(name) {
			found = append(found, value)
		}
	}
	entries, err := os.ReadDir(dir)
	if dir == "" || errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the credentials: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the credentials: %w", err)
		}
		if e.Name() == AWSConfig {
			found = append(found, findAWSSecrets(raw)...)
			continue
		}
		found = append(found, findFileSecrets(e.Name(), raw)...)
	}
	return found, nil
}

// findAWSSecrets returns the secrets in an AWS configuration file.
func findAWSSecrets(raw []byte) []string {
	var found []string
	for line := range strings.Lines(string(raw)) {
		if name, value, _ := strings.Cut(line, "="); secretNamePattern.MatchString(name) {
			found = append(found, strings.TrimSpace(value))
		}
	}
	return found
}

// findFileSecrets returns the secrets in a file: the values of keys that are named like secrets, or
// the whole content if the file has no keys.
func findFileSecrets(name string, raw []byte) []string {
	var doc map[string]any
	if yaml.Unmarshal(raw, &doc) != nil || len(doc) == 0 {
		if slices.Contains([]string{"username", "user", "region"}, name) {
			return nil
		}
		return []string{strings.TrimSpace(string(raw))}
	}
	var found []string
	var walk func(v any)
	walk = func(v any) {
		switch node := v.(type) {
		case []any:
			for _, one := range node {
				walk(one)
			}
		case map[string]any:
			for key, one := range node {
				if text, ok := one.(string); ok && secretNamePattern.MatchString(key) {
					found = append(found, text)
				} else {
					walk(one)
				}
			}
		}
	}
	walk(doc)
	return found
}
