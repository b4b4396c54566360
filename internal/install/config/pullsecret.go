package config

import (
	"encoding/json"
	"maps"

	"hotspare.io/hotspare/internal/fault"
)

// dockerConfig is the content of a .dockerconfigjson.
type dockerConfig struct {
	Auths map[string]json.RawMessage `json:"auths"`
}

// MergePullSecrets returns the registries of both pull secrets; entries of own take precedence.
// Either may be empty. An own pull secret that cannot be read is returned unchanged: the check of
// the install-config reports it. A global one that cannot be read is fault.Denied and is not
// quoted.
func MergePullSecrets(global, own string) (string, error) {
	if global == "" {
		return own, nil
	}
	var merged, mine dockerConfig
	if err := json.Unmarshal([]byte(global), &merged); err != nil || len(merged.Auths) == 0 {
		return "", fault.NewDenied(`it is not JSON such as {"auths":{"quay.io":{"auth":"…"}}}`)
	}
	if own == "" {
		return global, nil
	}
	if json.Unmarshal([]byte(own), &mine) != nil {
		return own, nil //nolint:nilerr // checking the whole install-config reports the problem
	}
	maps.Copy(merged.Auths, mine.Auths)
	out, err := json.Marshal(merged)
	return string(out), err
}
