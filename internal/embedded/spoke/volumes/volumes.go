// Package volumes provides the PersistentVolumes of a local cluster whose workers run containers: each
// is a folder on the disk of a worker.
package volumes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"

	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/spoke/informerloop"
	"hotspare.io/hotspare/internal/embedded/usernamespace"
)

const (
	// ClassName is the name of the default StorageClass.
	ClassName = "local"
	// Provisioner is the name of the provisioner in StorageClasses.
	Provisioner = "hotspare.io/local"
)

// A worker's folder of volumes, as a path in its node and below machine.NodePath, which is the node's
// /var.
const (
	nodeFolder = "/var/lib/hotspare/volumes"
	diskFolder = "lib/hotspare/volumes"
)

// folderMode lets each user in a container write. Only the node's pods that mount the volume reach it.
const folderMode = 0o777

// Run provisions and deletes volumes of the cluster whose machines are folders in the folder machines,
// until ctx ends.
func Run(ctx context.Context, client kubernetes.Interface, machines string) error {
	err := informerloop.RetryUntilSuccess(ctx, time.Second, func(ctx context.Context) error { return ensureClass(ctx, client) })
	if err != nil {
		return nil //nolint:nilerr // stopped before it was done; the next start does it
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	p := provisioner{machines: machines, remover: usernamespace.Remover{Command: []string{self}}}
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("volumes"))
	controller.NewProvisionController(ctx, client, Provisioner, p, controller.LeaderElection(false)).Run(ctx)
	return nil
}

// ensureClass creates the default StorageClass.
func ensureClass(ctx context.Context, client kubernetes.Interface) error {
	class := &storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: ClassName, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner:       Provisioner,
		ReclaimPolicy:     ptr.To(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
	}
	if _, err := client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating storage class %s: %w", ClassName, err)
	}
	return nil
}

// provisioner implements controller.Provisioner. It acts on this computer with more rights than those
// who write the cluster's objects, or run pods. Therefore it accepts only the names of volumes that
// it has chosen, and follows no link that a pod may have made.
type provisioner struct {
	machines string
	remover  usernamespace.Remover
}

// accessModes are the supported access modes: all pods with a volume run on its node.
var accessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod}

// Provision creates the folder of a volume on the node that the scheduler has selected.
func (p provisioner) Provision(_ context.Context, o controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	for _, mode := range o.PVC.Spec.AccessModes {
		if !slices.Contains(accessModes, mode) {
			return nil, controller.ProvisioningFinished, fmt.Errorf("access mode %s is not supported: a volume of storage class %s is on one node; use %s",
				mode, o.StorageClass.Name, corev1.ReadWriteOnce)
		}
	}
	if o.SelectedNodeName == "" {
		return nil, controller.ProvisioningFinished, fmt.Errorf("storage class %s has volumeBindingMode Immediate: use %s, so that the volume is created on the node of its pod",
			o.StorageClass.Name, storagev1.VolumeBindingWaitForFirstConsumer)
	}
	err := p.withNode(o.SelectedNodeName, o.PVName, func(node *os.Root, folder string) error {
		if err := node.MkdirAll(diskFolder, 0o755); err != nil {
			return err
		}
		if err := node.Mkdir(folder, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return node.Chmod(folder, folderMode) // regardless of the umask
	})
	if err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	return newVolume(o), controller.ProvisioningFinished, nil
}

// newVolume returns the PersistentVolume of a folder.
func newVolume(o controller.ProvisionOptions) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: o.PVName},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *o.StorageClass.ReclaimPolicy,
			AccessModes:                   o.PVC.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: o.PVC.Spec.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: path.Join(nodeFolder, o.PVName), Type: ptr.To(corev1.HostPathDirectory),
			}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{o.SelectedNodeName},
				}},
			}}}},
		},
	}
}

// Delete deletes the folder of a volume. A folder or a machine that does not exist is success.
func (p provisioner) Delete(ctx context.Context, volume *corev1.PersistentVolume) error {
	node := nodeOf(volume)
	if node == "" {
		return fmt.Errorf("volume %s has no node: its nodeAffinity must require one value of %s", volume.Name, corev1.LabelHostname)
	}
	err := p.withNode(node, volume.Name, func(node *os.Root, folder string) error {
		return p.remover.RemoveFrom(ctx, node, folder)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// nodeOf returns the node that the volume requires, or "" if it does not require exactly one.
func nodeOf(volume *corev1.PersistentVolume) string {
	affinity := volume.Spec.NodeAffinity
	if affinity == nil || affinity.Required == nil || len(affinity.Required.NodeSelectorTerms) != 1 {
		return ""
	}
	for _, r := range affinity.Required.NodeSelectorTerms[0].MatchExpressions {
		if r.Key == corev1.LabelHostname && r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 {
			return r.Values[0]
		}
	}
	return ""
}

// Names of machines, and of volumes as the provisioner controller chooses them.
var (
	machineName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	volumeName  = regexp.MustCompile(`^pvc-[0-9a-f-]{36}$`)
)

// withNode calls f with the disk folder of a node that runs containers and the path of a volume in it.
// No link leads out of the folder.
func (p provisioner) withNode(node, volume string, f func(node *os.Root, folder string) error) error {
	if !machineName.MatchString(node) {
		return fmt.Errorf("volume %s: %q is not the name of a node", volume, node)
	}
	if !volumeName.MatchString(volume) {
		return fmt.Errorf("volume %q was not created by %s: its name is not pvc- and a UID", volume, Provisioner)
	}
	dir := filepath.Join(p.machines, node)
	config, err := machine.LoadConfig(dir)
	if err != nil {
		return fmt.Errorf("volume %s on node %s: %w", volume, node, err)
	}
	if !config.RunsContainers() {
		return fmt.Errorf("volume %s: node %s runs no containers", volume, node)
	}
	root, err := os.OpenRoot(machine.NodePath(dir))
	if err != nil {
		return fmt.Errorf("volume %s on node %s: %w", volume, node, err)
	}
	err = f(root, path.Join(diskFolder, volume))
	if err := errors.Join(err, root.Close()); err != nil {
		return fmt.Errorf("volume %s on node %s: %w", volume, node, err)
	}
	return nil
}
