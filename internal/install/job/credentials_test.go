package job

import (
	"encoding/pem"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

// aCertificate returns a certificate in PEM.
func aCertificate(t *testing.T) string {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func TestWhatThePlatformsSecretsMustHave(t *testing.T) {
	aws := hivev1.Platform{AWS: section(`{"credentialsSecretRef":{"name":"creds"}}`)}
	vsphere := hivev1.Platform{VSphere: section(`{"credentialsSecretRef":{"name":"creds"},"certificatesSecretRef":{"name":"ca"}}`)}
	account := map[string]string{"username": "u", "password": "hush"}
	profile := func(line string) map[string]string {
		return map[string]string{"aws_config": "[default]\nregion = us-east-1\n" + line + "\n"}
	}
	for name, c := range map[string]struct {
		platform  hivev1.Platform
		creds, ca map[string]string
		want      string
	}{
		"keys":                             {aws, map[string]string{"aws_access_key_id": "hush", "aws_secret_access_key": "hush"}, nil, ""},
		"half of the keys":                 {aws, map[string]string{"aws_access_key_id": "hush"}, nil, "has no key aws_secret_access_key: add it"},
		"a configuration file":             {aws, profile("role_arn = r"), nil, ""},
		"an empty one":                     {aws, map[string]string{"aws_config": ""}, nil, "has no key aws_access_key_id: add it"},
		"one that runs a program":          {aws, profile("  credential_process=/bin/sh"), nil, `Secret "creds", named by spec.platform.aws.credentialsSecretRef, has credential_process in key aws_config, which is not allowed`},
		"one that reads a file of the pod": {aws, profile("Web_Identity_Token_File = /run/x"), nil, "has Web_Identity_Token_File in key aws_config"},
		"a role without a Secret":          {hivev1.Platform{AWS: section(`{"credentialsAssumeRole":{"roleARN":"r"}}`)}, nil, nil, "spec.platform.aws.credentialsAssumeRole does not apply to installs"},
		"a key for the host of libvirt": {
			hivev1.Platform{BareMetal: section(`{"libvirtSSHPrivateKeySecretRef":{"name":"ssh"}}`)},
			nil, nil,
			"spec.platform.baremetal.libvirtSSHPrivateKeySecretRef is not supported",
		},
		"an empty reference to such a key": {hivev1.Platform{BareMetal: section(`{"libvirtSSHPrivateKeySecretRef":{}}`)}, nil, nil, ""},
		"certificates":                     {vsphere, account, map[string]string{"a.txt": "x", "any.crt": aCertificate(t)}, ""},
		"no such Secret":                   {vsphere, account, nil, `Secret "ca", named by spec.platform.vsphere.certificatesSecretRef, does not exist: create it in namespace ns`},
		"a Secret without a certificate":   {vsphere, account, map[string]string{"ca.crt": "hush"}, `Secret "ca", named by spec.platform.vsphere.certificatesSecretRef, has no PEM certificate in any key`},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			for name, data := range map[string]map[string]string{"creds": c.creds, "ca": c.ca} {
				if data == nil {
					continue
				}
				s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string][]byte{}}
				for k, v := range data {
					s.Data[k] = []byte(v)
				}
				objects = append(objects, s)
			}
			scheme := runtime.NewScheme()
			if err := corev1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			e := New(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), Options{})
			err := e.checkSecrets(t.Context(), placeOn(c.platform))
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v", err)
			case c.want != "" && (fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush")):
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
