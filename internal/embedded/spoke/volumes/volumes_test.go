package volumes

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"

	"hotspare.io/hotspare/internal/embedded/machine"
)

const volume = "pvc-8a1ef1f0-1111-4222-8333-444455556666"

// newMachines returns a provisioner with a worker that runs containers and one that does not.
func newMachines(t *testing.T) (provisioner, string) {
	t.Helper()
	p := provisioner{machines: t.TempDir()}
	for name, containers := range map[string]bool{"c-worker-0": true, "c-worker-1": false} {
		dir := filepath.Join(p.machines, name)
		if err := os.MkdirAll(machine.NodePath(dir), 0o700); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(machine.Config{Name: name, Role: machine.Worker, Containers: containers})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(machine.ConfigPath(dir), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p, machine.NodePath(filepath.Join(p.machines, "c-worker-0"))
}

func request(node string, mode corev1.PersistentVolumeAccessMode) controller.ProvisionOptions {
	o := controller.ProvisionOptions{
		PVName: volume,
		PVC: &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{mode},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}},
		StorageClass: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: ClassName}, ReclaimPolicy: ptr.To(corev1.PersistentVolumeReclaimDelete)},
	}
	o.SelectedNodeName = node
	return o
}

func TestAVolumeIsAFolderOfItsNode(t *testing.T) {
	p, disk := newMachines(t)
	folder := filepath.Join(disk, diskFolder, volume)
	var pv *corev1.PersistentVolume
	for range 2 { // the second time, the folder exists, as after a crash
		var err error
		if pv, _, err = p.Provision(t.Context(), request("c-worker-0", corev1.ReadWriteOnce)); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(folder)
	if err != nil || info.Mode().Perm() != folderMode {
		t.Errorf("the folder is %v: %v", info, err)
	}
	if pv.Spec.HostPath.Path != "/var/lib/hotspare/volumes/"+volume || nodeOf(pv) != "c-worker-0" || pv.Name != volume {
		t.Errorf("the volume is %+v", pv.Spec)
	}
	if err := os.WriteFile(filepath.Join(folder, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.Delete(t.Context(), pv); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("the folder still exists")
	}
}

func TestWhatCannotBeProvisioned(t *testing.T) {
	p, _ := newMachines(t)
	for name, c := range map[string]struct {
		o    controller.ProvisionOptions
		want string
	}{
		"several nodes":    {request("c-worker-0", corev1.ReadWriteMany), "ReadWriteMany is not supported"},
		"no node":          {request("", corev1.ReadWriteOnce), "WaitForFirstConsumer"},
		"an unknown node":  {request("c-worker-9", corev1.ReadWriteOnce), "c-worker-9"},
		"no containers":    {request("c-worker-1", corev1.ReadWriteOnce), "runs no containers"},
		"a path as a node": {request("../c-worker-0", corev1.ReadWriteOnce), "not the name of a node"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := p.Provision(t.Context(), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestNothingElseIsDeleted tests that whoever writes objects of the cluster, or runs pods in it, cannot
// delete folders of this computer.
func TestNothingElseIsDeleted(t *testing.T) {
	p, disk := newMachines(t)
	outside := filepath.Join(t.TempDir(), volume)
	if err := os.Mkdir(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	good := newVolume(request("c-worker-0", corev1.ReadWriteOnce))
	if err := os.MkdirAll(filepath.Join(disk, "lib", "hotspare"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(disk, diskFolder)); err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(t.Context(), good); err == nil {
		t.Error("a link of a pod was followed")
	}
	if _, _, err := p.Provision(t.Context(), request("c-worker-0", corev1.ReadWriteOnce)); err == nil {
		t.Error("a link of a pod was followed")
	}
	for _, name := range []string{"..", "../../../x", "pvc-", "other", "pvc-8a1ef1f0-1111-4222-8333-44445555666/", ""} {
		named := good.DeepCopy()
		named.Name = name
		if err := p.Delete(t.Context(), named); err == nil {
			t.Errorf("the volume %q was deleted", name)
		}
	}
	without := good.DeepCopy()
	without.Spec.NodeAffinity = nil
	if err := p.Delete(t.Context(), without); err == nil {
		t.Error("a volume without a node was deleted")
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

func TestTheDefaultClassIsCreatedOnce(t *testing.T) {
	client := fake.NewClientset()
	for range 2 {
		if err := ensureClass(t.Context(), client); err != nil {
			t.Fatal(err)
		}
	}
	class, err := client.StorageV1().StorageClasses().Get(t.Context(), ClassName, metav1.GetOptions{})
	if err != nil || class.Provisioner != Provisioner || class.Annotations["storageclass.kubernetes.io/is-default-class"] != "true" {
		t.Errorf("the class is %+v: %v", class, err)
	}
}
