package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// A cluster of OpenShift 4.4.7 cannot hibernate. It is upgraded, by somebody and in the
// cluster alone, and then it does what was asked of it all the time.
func TestAnUpgradedClusterHibernatesByItself(t *testing.T) {
	h := shared(t)
	images := &hivev1.ClusterImageSet{ObjectMeta: metav1.ObjectMeta{Name: "ocp-4.4.7"}, Spec: hivev1.ClusterImageSetSpec{ReleaseImage: "quay.io/openshift-release-dev/ocp-release:4.4.7-x86_64"}}
	cd := shortLived(h.namespace(t), "veteran")
	cd.Spec.Platform.Local = &hivev1.LocalPlatform{}
	cd.Spec.Provisioning.ImageSetRef.Name = images.Name
	h.create(t, images, cd)
	t.Cleanup(func() { _ = h.Delete(context.Background(), cd) })
	t.Cleanup(func() { _ = h.Delete(context.Background(), images) })
	h.conditioned(t, cd, hivev1.ClusterReady, corev1.ConditionTrue)
	if c := h.conditioned(t, cd, hivev1.ClusterHibernating, corev1.ConditionFalse); c.Reason != hivev1.ReasonUnsupported {
		t.Errorf("condition Hibernating: %s: %s", c.Reason, c.Message)
	}
	says(t, h.hotspare(t, "cluster", "describe", cd.Name, "-n", cd.Namespace), "Running, and cannot hibernate: OpenShift 4.4.7")
	eventually(t, "its version is stored", func(ctx context.Context) error { return h.atVersion(ctx, cd, "4.4.7") })

	spoke, err := dynamic.NewForConfig(h.spoke(t, cd))
	if err != nil {
		t.Fatal(err)
	}
	versions := spoke.Resource(schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "clusterversions"})
	_, err = versions.Patch(t.Context(), "version", types.MergePatchType, []byte(`{"status":{"desired":{"version":"4.5.1"}}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	h.kubectl(t, "annotate", "cd", "-n", cd.Namespace, cd.Name, "look=again") // or within two minutes
	h.conditioned(t, cd, hivev1.ClusterHibernating, corev1.ConditionTrue)
	if err := h.atVersion(t.Context(), cd, "4.5.1"); err != nil {
		t.Error(err)
	}
	if got := cd.Labels[hivev1.LabelVersionMajorMinorPatch]; got != "4.5.1" {
		t.Errorf("its label says %q", got)
	}
}

// atVersion returns an error unless the cluster's status has that version.
func (h *hub) atVersion(ctx context.Context, cd *hivev1.ClusterDeployment, version string) error {
	if err := h.Get(ctx, client.ObjectKeyFromObject(cd), cd); err != nil {
		return err
	}
	raw, err := cd.Status.ClusterVersionStatus.MarshalJSON()
	if err != nil {
		return err
	}
	if got := string(raw); !strings.Contains(got, fmt.Sprintf(`"version":%q`, version)) {
		return fmt.Errorf("status.clusterVersionStatus is %s", got)
	}
	return nil
}
