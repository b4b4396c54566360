package config

import (
	"encoding/json"
	"strings"

	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

// Keys of credentials Secrets, as Hive and the installers name them.
const (
	keyServiceAccount = "osServiceAccount.json" // of Google Cloud
	keyVCenters       = "vCenters"              // of vSphere: a list, an account each
)

// NeedsCredentials reports whether an install-config for p contains data from the credentials
// Secret.
func NeedsCredentials(p hivev1.Platform) bool {
	return p.GCP != nil || p.VSphere != nil || p.Nutanix != nil
}

// fillCredentials sets absent or empty values from the credentials Secret.
func (p Params) fillCredentials(doc document) error {
	if len(p.Credentials) == 0 {
		return nil
	}
	platforms, _ := doc["platform"].(map[string]any)
	if gcp, ok := platforms["gcp"].(map[string]any); ok && p.Platform.GCP != nil {
		return p.fillProject(gcp)
	}
	if vsphere, ok := platforms["vsphere"].(map[string]any); ok && p.Platform.VSphere != nil {
		return p.fillVCenters(vsphere)
	}
	if nutanix, ok := platforms["nutanix"].(map[string]any); ok && p.Platform.Nutanix != nil {
		if central, ok := nutanix["prismCentral"].(map[string]any); ok {
			p.defaultAccount().fillMissingLogin(central, "username")
		}
	}
	return nil
}

// fillProject sets the project from the service account's key.
func (p Params) fillProject(gcp map[string]any) error {
	raw := p.Credentials[keyServiceAccount]
	if len(raw) == 0 || !isEmptyValue(gcp["projectID"]) {
		return nil
	}
	var key struct {
		Project string `json:"project_id"`
	}
	if json.Unmarshal(raw, &key) != nil {
		return fault.NewDenied("platform.gcp.projectID: the key %s of the Secret that spec.platform.gcp.credentialsSecretRef names "+
			"is not the JSON key of a service account: correct it", keyServiceAccount)
	}
	if key.Project != "" {
		gcp["projectID"] = key.Project
	}
	return nil
}

// account is the login for a vCenter or Prism Central.
type account struct {
	VCenter  string `json:"vCenter"`
	Username string `json:"username"`
	Password string `json:"password"`
}

// defaultAccount returns the account for endpoints that have no account of their own.
func (p Params) defaultAccount() account {
	return account{
		Username: string(p.Credentials[hivev1.SecretKeyUsername]),
		Password: string(p.Credentials[hivev1.SecretKeyPassword]),
	}
}

// fillMissingLogin sets user and password where the password is missing, unless another user is set:
// a user must never get another user's password.
func (a account) fillMissingLogin(into map[string]any, user string) {
	if a.Username == "" || a.Password == "" || !isEmptyValue(into["password"]) {
		return
	}
	if !isEmptyValue(into[user]) && into[user] != a.Username {
		return
	}
	into[user], into["password"] = a.Username, a.Password
}

// fillVCenters sets the account of each vCenter, in either form of the section.
func (p Params) fillVCenters(vsphere map[string]any) error {
	var accounts []account
	if raw, ok := p.Credentials[keyVCenters]; ok && yaml.Unmarshal(raw, &accounts) != nil {
		return fault.NewDenied("platform.vsphere: the key %s of the Secret that spec.platform.vsphere.credentialsSecretRef names "+
			"is not a list of vCenter, username and password: correct it", keyVCenters)
	}
	accountOf := func(server any) account {
		for _, a := range accounts {
			if name, ok := server.(string); ok && strings.EqualFold(a.VCenter, name) {
				return a
			}
		}
		return p.defaultAccount()
	}
	for _, v := range toList(vsphere["vcenters"]) {
		if center, ok := v.(map[string]any); ok {
			accountOf(center["server"]).fillMissingLogin(center, "user")
		}
	}
	if !isEmptyValue(vsphere["vCenter"]) && len(toList(vsphere["vcenters"])) == 0 {
		accountOf(vsphere["vCenter"]).fillMissingLogin(vsphere, "username")
	}
	return nil
}

// isEmptyValue reports whether v is absent or an empty text.
func isEmptyValue(v any) bool {
	text, ok := v.(string)
	return v == nil || ok && strings.TrimSpace(text) == ""
}
