// Package install has the manifests that install an agent on a data plane: its identity on the hub,
// and the objects that run it on the data plane. It is pure; the hub's controller applies the
// manifests.
package install

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"path"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Names of the agent's objects on a data plane.
const (
	Namespace  = "hotspare-agent"
	Name       = "hotspare-agent"
	SecretName = "hub"
	// secretKey is the key of the kubeconfig in that Secret, and mountPath is where the pod mounts
	// it.
	secretKey = "kubeconfig"
	mountPath = "/etc/hotspare/hub"
)

// LocalImage is the image for local machines, which run the agent as part of their own program,
// without a container.
const LocalImage = "hotspare.io/local/agent"

// Agent is the configuration of an agent to install.
type Agent struct {
	// Namespace and Name are those of the DataPlaneAgent on the hub; UID is the UID of its
	// DataPlane.
	Namespace, Name, UID string
	// Image is the agent's image. It must have hotspare in its PATH.
	Image string
	// Operator is agent.Fleetshard or agent.StandIn.
	Operator string
	// HubKubeconfig is the kubeconfig for the hub, see BuildKubeconfig.
	HubKubeconfig []byte
}

// Manifests are the objects to install on a data plane.
type Manifests struct {
	// Absent are created if they do not exist; others may have created them, and keep them.
	Absent []client.Object
	// Apply are applied in order.
	Apply []client.Object
}

//go:embed crd/*.yaml
var crds embed.FS

// DataPlaneManifests returns the objects that run the agent on its data plane. A changed kubeconfig
// causes a new pod.
func DataPlaneManifests(a Agent) (Manifests, error) {
	var m Manifests
	files, err := crds.ReadDir("crd")
	if err != nil {
		return m, err
	}
	for _, f := range files {
		raw, err := crds.ReadFile(path.Join("crd", f.Name()))
		if err != nil {
			return m, err
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(raw, &u.Object); err != nil {
			return m, fmt.Errorf("reading %s: %w", f.Name(), err)
		}
		m.Absent = append(m.Absent, u)
	}
	m.Apply = append([]client.Object{
		&corev1.Namespace{TypeMeta: newTypeMeta("v1", "Namespace"), ObjectMeta: metav1.ObjectMeta{Name: Namespace}},
		&corev1.ServiceAccount{TypeMeta: newTypeMeta("v1", "ServiceAccount"), ObjectMeta: newObjectMeta(Name)},
		&corev1.Secret{TypeMeta: newTypeMeta("v1", "Secret"), ObjectMeta: newObjectMeta(SecretName), Data: map[string][]byte{secretKey: a.HubKubeconfig}},
		placeholderPriorityClass(),
	}, accessObjects(a)...)
	m.Apply = append(m.Apply, agentDeployment(a))
	return m, nil
}

func newTypeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

// newObjectMeta returns the metadata of an object in the agent's namespace. It lacks the label of
// objects that agents create, or the agent would take the object for its own.
func newObjectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: Namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/name": Name}}
}

// placeLocalAgent places the agent of LocalImage on the control plane of a local cluster: its machine
// runs that image, and the workers may run containers instead.
func placeLocalAgent(pod *corev1.PodSpec) {
	pod.NodeSelector = map[string]string{"node-role.kubernetes.io/control-plane": ""}
	pod.Tolerations = []corev1.Toleration{{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
}

func agentDeployment(a Agent) *appsv1.Deployment {
	sum := sha256.Sum256(a.HubKubeconfig)
	marks := map[string]string{"app.kubernetes.io/name": Name}
	d := &appsv1.Deployment{
		TypeMeta:   newTypeMeta("apps/v1", "Deployment"),
		ObjectMeta: newObjectMeta(Name),
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector: &metav1.LabelSelector{MatchLabels: marks},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      marks,
					Annotations: map[string]string{"hotspare.io/hub-kubeconfig": hex.EncodeToString(sum[:8])},
				},
				Spec: corev1.PodSpec{
					ServiceAccountName: Name,
					SecurityContext:    &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
					Containers:         []corev1.Container{agentContainer(a)},
					Volumes: []corev1.Volume{{
						Name:         SecretName,
						VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: SecretName}},
					}},
				},
			},
		},
	}
	if a.Image == LocalImage {
		placeLocalAgent(&d.Spec.Template.Spec)
	}
	return d
}

func agentContainer(a Agent) corev1.Container {
	args := []string{"--hub-kubeconfig=" + path.Join(mountPath, secretKey), "--namespace=" + a.Namespace, "--name=" + a.Name, "--operator=" + a.Operator}
	if a.UID != "" {
		args = append(args, "--data-plane-uid="+a.UID)
	}
	return corev1.Container{
		Name:    "agent",
		Image:   a.Image,
		Command: []string{"hotspare", "agent"},
		Args:    args,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("96Mi"),
		}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: SecretName, MountPath: mountPath, ReadOnly: true}},
	}
}

// BuildKubeconfig builds the agent's kubeconfig from the token that the hub has put into its Secret
// (see HubObjects). server is the hub's address as data planes reach it. ca is the CA of the
// server's certificate; if it is empty, BuildKubeconfig uses the one in the Secret.
func BuildKubeconfig(server string, ca []byte, token *corev1.Secret) ([]byte, error) {
	if len(token.Data[corev1.ServiceAccountTokenKey]) == 0 {
		return nil, fmt.Errorf("secret %s/%s has no token yet", token.Namespace, token.Name)
	}
	if len(ca) == 0 {
		ca = token.Data[corev1.ServiceAccountRootCAKey]
	}
	if server == "" {
		return nil, errors.New("the address of the hub is unknown")
	}
	const name = "hub"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: server, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: string(token.Data[corev1.ServiceAccountTokenKey])}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name, Namespace: token.Namespace}},
		CurrentContext: name,
	})
}
