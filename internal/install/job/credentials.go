package job

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"path"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/install/job/pod"
)

// platformCredentials describes how openshift-install receives the credentials of a platform.
type platformCredentials struct {
	// keys lists the required keys of the Secret.
	keys []string
	// env maps a key of the Secret to the variable that is set to its value.
	env map[string]string
	// files maps a key of the Secret to the variable that is set to the path of its file.
	files map[string]string
	// optional lists the variables that may be unset.
	optional []string
	// instead is a key that replaces all others; "" if there is none.
	instead string
}

// credentialsByPlatform is keyed by platform. The accounts of vSphere and Nutanix are in the
// install-config; pods that destroy clusters read them from the Secret. A platform that is not
// listed needs no credentials.
var credentialsByPlatform = map[string]platformCredentials{
	"aws": {
		keys: []string{"aws_access_key_id", "aws_secret_access_key"},
		env: map[string]string{
			"AWS_ACCESS_KEY_ID": "aws_access_key_id", "AWS_SECRET_ACCESS_KEY": "aws_secret_access_key", "AWS_SESSION_TOKEN": "aws_session_token",
		},
		// With a configuration file none of them is used: package pod removes them.
		optional: []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"},
		instead:  pod.AWSConfig,
	},
	"azure":     {keys: []string{"osServicePrincipal.json"}, files: map[string]string{"AZURE_AUTH_LOCATION": "osServicePrincipal.json"}},
	"gcp":       {keys: []string{"osServiceAccount.json"}, files: map[string]string{"GOOGLE_CREDENTIALS": "osServiceAccount.json"}},
	"ibmcloud":  {keys: []string{"ibmcloud_api_key"}, env: map[string]string{"IC_API_KEY": "ibmcloud_api_key"}},
	"nutanix":   {keys: []string{"username", "password"}},
	"openstack": {keys: []string{"clouds.yaml"}, files: map[string]string{"OS_CLIENT_CONFIG_FILE": "clouds.yaml"}},
	"vsphere":   {keys: []string{"username", "password"}},
}

func credentialsSecretName(p install.ClusterTarget) string {
	if ref := p.Platform.Settings().CredentialsSecretRef; ref != nil {
		return ref.Name
	}
	return ""
}

func certificatesSecretName(p install.ClusterTarget) string {
	if ref := p.Platform.Settings().CertificatesSecretRef; ref != nil {
		return ref.Name
	}
	return ""
}

// checkSecrets returns fault.Denied with a remedy unless the Secrets that the platform and the
// hub's administrator name exist and the installer can use them. Without them the pod would never
// start.
func (e *Executor) checkSecrets(ctx context.Context, p install.ClusterTarget) error {
	if err := checkSupported(p.Platform); err != nil {
		return err
	}
	if err := e.checkCredentials(ctx, p); err != nil {
		return err
	}
	if err := e.checkCertificates(ctx, p); err != nil {
		return err
	}
	_, err := e.CertificateAuthorities.Read(ctx)
	return err
}

// checkSupported returns fault.Denied for ways to log in that Jobs do not support.
func checkSupported(p hivev1.Platform) error {
	var aws struct{ CredentialsAssumeRole *struct{ RoleARN string } }
	if p.AWS != nil && json.Unmarshal(p.AWS.Raw, &aws) == nil && aws.CredentialsAssumeRole != nil && aws.CredentialsAssumeRole.RoleARN != "" {
		return fault.NewDenied("spec.platform.aws.credentialsAssumeRole does not apply to installs: name a Secret in credentialsSecretRef instead; "+
			"its key %s can have role_arn with a source_profile", pod.AWSConfig)
	}
	var metal struct{ LibvirtSSHPrivateKeySecretRef *corev1.LocalObjectReference }
	if p.BareMetal != nil && json.Unmarshal(p.BareMetal.Raw, &metal) == nil && metal.LibvirtSSHPrivateKeySecretRef != nil && metal.LibvirtSSHPrivateKeySecretRef.Name != "" {
		return fault.NewDenied("spec.platform.baremetal.libvirtSSHPrivateKeySecretRef is not supported: the installer's pod does not log in to hosts by SSH; " +
			"use a libvirtURI that needs no SSH, such as qemu+tls, and remove the field")
	}
	return nil
}

// checkCertificates checks the Secret with the platform's CA certificates. Go, in which the
// installer and its providers are written, reads all files of the Secret and ignores those without
// a certificate.
func (e *Executor) checkCertificates(ctx context.Context, p install.ClusterTarget) error {
	name, field := certificatesSecretName(p), "spec.platform."+p.Platform.Name()+".certificatesSecretRef"
	if name == "" {
		return nil
	}
	var secret corev1.Secret
	err := e.hub.Get(ctx, types.NamespacedName{Namespace: p.Cluster.Namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return fault.NewDenied("Secret %q, named by %s, does not exist: create it in namespace %s", name, field, p.Cluster.Namespace)
	}
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", name, err)
	}
	for _, raw := range secret.Data {
		if x509.NewCertPool().AppendCertsFromPEM(raw) {
			return nil
		}
	}
	return fault.NewDenied("Secret %q, named by %s, has no PEM certificate in any key: add the CA of the platform", name, field)
}

// checkCredentials returns fault.Denied with a remedy unless the Secret with the platform's
// credentials exists and is complete. Without it the pod would never start.
func (e *Executor) checkCredentials(ctx context.Context, p install.ClusterTarget) error {
	platform := p.Platform.Name()
	need, ok := credentialsByPlatform[platform]
	if !ok {
		return nil
	}
	name := credentialsSecretName(p)
	if name == "" {
		return fault.NewDenied("spec.platform.%s.credentialsSecretRef names no Secret: name one with the keys %v", platform, need.keys)
	}
	var secret corev1.Secret
	err := e.hub.Get(ctx, types.NamespacedName{Namespace: p.Cluster.Namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return fault.NewDenied("Secret %q, named by spec.platform.%s.credentialsSecretRef, does not exist: create it in namespace %s", name, platform, p.Cluster.Namespace)
	}
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", name, err)
	}
	if file := secret.Data[need.instead]; need.instead != "" && len(file) > 0 {
		if setting := forbiddenAWSSettings.FindSubmatch(file); setting != nil {
			return fault.NewDenied("Secret %q, named by spec.platform.%s.credentialsSecretRef, has %s in key %s, which is not allowed: "+
				"set aws_access_key_id and aws_secret_access_key, or role_arn with a source_profile that has them", name, platform, setting[1], need.instead)
		}
		return nil
	}
	for _, key := range need.keys {
		if len(secret.Data[key]) == 0 {
			return fault.NewDenied("Secret %q, named by spec.platform.%s.credentialsSecretRef, has no key %s: add it", name, platform, key)
		}
	}
	return nil
}

// forbiddenAWSSettings matches AWS settings that run programs in the pod or read data from outside
// it.
var forbiddenAWSSettings = regexp.MustCompile(`(?mi)^[ \t]*(credential_process|credential_source|login_session|mfa_serial|` +
	`sso_account_id|sso_session|sso_start_url|web_identity_token_file)[ \t]*=`)

// credentialsEnv returns the variables of the installer's environment that contain the credentials,
// or the paths of their files below dir.
func (c platformCredentials) credentialsEnv(secret, dir string) []corev1.EnvVar {
	var out []corev1.EnvVar
	for _, name := range sortedKeys(c.env) {
		ref := &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: c.env[name]}
		for _, o := range c.optional {
			if o == name {
				ref.Optional = ptr.To(true)
			}
		}
		out = append(out, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: ref}})
	}
	for _, name := range sortedKeys(c.files) {
		out = append(out, corev1.EnvVar{Name: name, Value: path.Join(dir, c.files[name])})
	}
	return out
}
