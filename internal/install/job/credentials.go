package job

import (
	"context"
	"fmt"
	"path"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
)

// access is how openshift-install is given the credentials of a platform.
type access struct {
	// keys of the Secret that must be there.
	keys []string
	// env has variables by the key whose value they have.
	env map[string]string
	// files has variables by the key of the file that they name.
	files map[string]string
	// optional are those variables that may be without a value.
	optional []string
}

// accesses are by platform. The accounts of vSphere and Nutanix stand in the
// install-config; pods that destroy take them from the Secret. A platform that is not
// here needs none.
var accesses = map[string]access{
	"aws": {
		keys: []string{"aws_access_key_id", "aws_secret_access_key"},
		env: map[string]string{
			"AWS_ACCESS_KEY_ID": "aws_access_key_id", "AWS_SECRET_ACCESS_KEY": "aws_secret_access_key", "AWS_SESSION_TOKEN": "aws_session_token",
		},
		optional: []string{"AWS_SESSION_TOKEN"},
	},
	"azure":     {keys: []string{"osServicePrincipal.json"}, files: map[string]string{"AZURE_AUTH_LOCATION": "osServicePrincipal.json"}},
	"gcp":       {keys: []string{"osServiceAccount.json"}, files: map[string]string{"GOOGLE_CREDENTIALS": "osServiceAccount.json"}},
	"ibmcloud":  {keys: []string{"ibmcloud_api_key"}, env: map[string]string{"IC_API_KEY": "ibmcloud_api_key"}},
	"nutanix":   {keys: []string{"username", "password"}},
	"openstack": {keys: []string{"clouds.yaml"}, files: map[string]string{"OS_CLIENT_CONFIG_FILE": "clouds.yaml"}},
	"vsphere":   {keys: []string{"username", "password"}},
}

func credentialsName(p install.Place) string {
	if ref := p.Platform.Settings().CredentialsSecretRef; ref != nil {
		return ref.Name
	}
	return ""
}

func certificatesName(p install.Place) string {
	if ref := p.Platform.Settings().CertificatesSecretRef; ref != nil {
		return ref.Name
	}
	return ""
}

// checkCredentials is fault.Denied, and says what to do, unless the Secret with the
// platform's credentials is there and whole. A pod without would never begin.
func (e *Executor) checkCredentials(ctx context.Context, p install.Place) error {
	platform := p.Platform.Name()
	need, ok := accesses[platform]
	if !ok {
		return nil
	}
	name := credentialsName(p)
	if name == "" {
		return fault.Denying("spec.platform.%s.credentialsSecretRef names no Secret: name one with the keys %v", platform, need.keys)
	}
	var secret corev1.Secret
	err := e.hub.Get(ctx, types.NamespacedName{Namespace: p.Cluster.Namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return fault.Denying("Secret %q, named by spec.platform.%s.credentialsSecretRef, does not exist: create it in namespace %s", name, platform, p.Cluster.Namespace)
	}
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", name, err)
	}
	for _, key := range need.keys {
		if len(secret.Data[key]) == 0 {
			return fault.Denying("Secret %q, named by spec.platform.%s.credentialsSecretRef, has no key %s: add it", name, platform, key)
		}
	}
	return nil
}

// env is the part of the installer's environment that has the credentials, or names
// their files below dir.
func (a access) variables(secret, dir string) []corev1.EnvVar {
	var out []corev1.EnvVar
	for _, name := range sorted(a.env) {
		ref := &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: a.env[name]}
		for _, o := range a.optional {
			if o == name {
				ref.Optional = ptr.To(true)
			}
		}
		out = append(out, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: ref}})
	}
	for _, name := range sorted(a.files) {
		out = append(out, corev1.EnvVar{Name: name, Value: path.Join(dir, a.files[name])})
	}
	return out
}
