package provision

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestAllClustersGetTheGlobalPullSecret(t *testing.T) {
	w := newWorld(t, request()...)
	w.globalPullSecret = client.ObjectKey{Namespace: "hotspare-system", Name: "global"}
	w.mustPass()
	wantEqual(t, `False/SecretNotFound: The hub's global pull secret, Secret "hotspare-system/global", does not exist or has no key .dockerconfigjson: `+
		`ask the hub's administrator to create it, or to start hotspare without --global-pull-secret.`, w.says(hivev1.ClusterRequirementsMet))

	global := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "hotspare-system", Name: "global"},
		Data:       map[string][]byte{hivev1.SecretKeyPullSecret: []byte(`{"auths":{"quay.io":{"auth":"global"},"mirror.example.com":{"auth":"mirrored"}}}`)},
	}
	if err := w.live.Create(t.Context(), global); err != nil {
		t.Fatal(err)
	}
	w.catchUp()
	wantEqual(t, []ctrl.Request{{NamespacedName: key}}, w.reconciler().awaitingSecret(t.Context(), global))
	w.drive("installed", w.installed)
	written := string(w.lab.requests[0].Config)
	for text, there := range map[string]bool{"mirrored": true, "hunter2": true, `"auth":"global"`: false} {
		if strings.Contains(written, text) != there {
			t.Errorf("%s in the install-config: want %t\n%s", text, there, written)
		}
	}
	var stored corev1.SecretList
	if err := w.live.List(t.Context(), &stored, client.InNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	for _, s := range stored.Items {
		for name, value := range s.Data {
			if strings.Contains(string(value), "mirrored") {
				t.Errorf("the global pull secret is in Secret %s, key %s", s.Name, name)
			}
		}
	}
}

func TestAChangeOfTheCertificateAuthoritiesWakesInstallsThatWait(t *testing.T) {
	w := newWorld(t, request()...)
	w.catchUp()
	authorities := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "hotspare-system", Name: "ca-2"}}
	if got := w.reconciler().awaitingSecret(t.Context(), authorities); len(got) > 0 {
		t.Errorf("a Secret that nobody names wakes %v", got)
	}
	w.certificateAuthorities = []client.ObjectKey{{Namespace: "hotspare-system", Name: "ca-1"}, client.ObjectKeyFromObject(authorities)}
	wantEqual(t, []ctrl.Request{{NamespacedName: key}}, w.reconciler().awaitingSecret(t.Context(), authorities))
}
