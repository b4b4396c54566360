package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"hotspare.io/hotspare/internal/embedded/pki"
)

// The token of a pod's service account is valid for tokenLifetime; it is renewed, as by a kubelet,
// when a fifth of that is left.
const (
	tokenLifetime = time.Hour
	renewToken    = tokenLifetime * 4 / 5
)

func (p *podProcess) kubeconfigPath() string { return filepath.Join(p.dir, "kubeconfig") }
func (p *podProcess) tokenPath() string      { return filepath.Join(p.dir, "token") }

// writeVolumes writes the files of the pod's volumes. It rewrites them at each start.
func (p *podProcess) writeVolumes(ctx context.Context) error {
	if err := os.RemoveAll(p.dir); err != nil {
		return fmt.Errorf("clearing the pod's folder: %w", err)
	}
	for _, v := range p.pod.Spec.Volumes {
		dir := podVolumePath(p.dir, v.Name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("creating the folder of volume %s: %w", v.Name, err)
		}
		if err := p.fillVolume(ctx, v, dir); err != nil {
			return fmt.Errorf("filling volume %s: %w", v.Name, err)
		}
	}
	return nil
}

func (p *podProcess) fillVolume(ctx context.Context, v corev1.Volume, dir string) error {
	switch {
	case v.Secret != nil:
		secret, err := p.client.CoreV1().Secrets(p.pod.Namespace).Get(ctx, v.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for name, content := range secret.Data {
			if err := pki.WriteFile(filepath.Join(dir, name), content); err != nil {
				return err
			}
		}
		return nil
	case v.Projected != nil: // the volume that the API adds for the service account
		return p.writeKubeconfig(ctx)
	case v.EmptyDir != nil:
		return nil
	}
	return errors.New("local machines support only secret, emptyDir and the service account's volume")
}

// writeKubeconfig writes a kubeconfig for the pod's service account. Clients need it because the
// files that they look for inside a container do not exist here.
func (p *podProcess) writeKubeconfig(ctx context.Context) error {
	if err := p.writePodToken(ctx); err != nil {
		return err
	}
	const name = "pod"
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: p.api.Host, CertificateAuthorityData: p.api.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {TokenFile: p.tokenPath()}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name, Namespace: p.pod.Namespace}},
		CurrentContext: name,
	})
	if err != nil {
		return err
	}
	return pki.WriteFile(p.kubeconfigPath(), raw)
}

// writePodToken requests a token from the API that is bound to the pod.
func (p *podProcess) writePodToken(ctx context.Context) error {
	account := p.pod.Spec.ServiceAccountName
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(tokenLifetime / time.Second)),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.pod.Name, UID: p.pod.UID},
	}}
	got, err := p.client.CoreV1().ServiceAccounts(p.pod.Namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("requesting a token of service account %s: %w", account, err)
	}
	return pki.WriteFile(p.tokenPath(), []byte(got.Status.Token))
}
