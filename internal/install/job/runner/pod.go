package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"hotspare.io/hotspare/internal/hubjob"
)

// Pod is a pod that runs as a process: its paths are mapped to this computer.
type Pod struct {
	// Dir contains what the pod mounts, and its log.
	Dir       string
	Args, Env []string
}

// hostPath returns where a path of the pod is on this computer.
func (p Pod) hostPath(in string) string {
	return strings.ReplaceAll(in, hubjob.Root, p.Dir)
}

// CleanPodDir removes what a pod has mounted and written, because it contains secrets; the log is
// kept.
func CleanPodDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cleaning up after a pod: %w", err)
	}
	for _, e := range entries {
		if e.Name() != logName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// preparePod creates the folder of a pod and returns how to start it.
func (r *Runner) preparePod(ctx context.Context, pod *corev1.Pod) (Pod, error) {
	p := Pod{Dir: r.podDir(pod)}
	c := pod.Spec.Containers[0]
	at := map[string]string{}
	for _, m := range c.VolumeMounts {
		at[m.Name] = p.hostPath(m.MountPath)
	}
	for _, v := range pod.Spec.Volumes {
		if dir, ok := at[v.Name]; ok && strings.HasPrefix(dir, p.Dir) {
			if err := r.mountVolume(ctx, pod, v, dir); err != nil {
				return p, fmt.Errorf("mounting volume %s: %w", v.Name, err)
			}
		}
	}
	for _, arg := range c.Args {
		p.Args = append(p.Args, p.hostPath(arg))
	}
	for _, e := range c.Env {
		value, ok, err := r.resolveEnvVar(ctx, pod, e)
		if err != nil {
			return p, fmt.Errorf("variable %s: %w", e.Name, err)
		}
		if ok {
			p.Env = append(p.Env, e.Name+"="+p.hostPath(value))
		}
	}
	return p, nil
}

// mountVolume writes the content of a volume into a folder.
func (r *Runner) mountVolume(ctx context.Context, pod *corev1.Pod, v corev1.Volume, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	switch {
	case v.Secret != nil:
		data, err := r.readSecretData(ctx, pod.Namespace, v.Secret.SecretName)
		return errors.Join(err, writeFiles(dir, data))
	case v.ConfigMap != nil:
		data, err := r.readConfigMapData(ctx, pod.Namespace, v.ConfigMap.Name)
		return errors.Join(err, writeFiles(dir, data))
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			if err := r.mountProjection(ctx, pod, source, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Runner) mountProjection(ctx context.Context, pod *corev1.Pod, source corev1.VolumeProjection, dir string) error {
	switch {
	case source.ServiceAccountToken != nil:
		token, err := r.requestToken(ctx, pod)
		return errors.Join(err, writeFiles(dir, map[string][]byte{source.ServiceAccountToken.Path: []byte(token)}))
	case source.ConfigMap != nil:
		data, err := r.readConfigMapData(ctx, pod.Namespace, source.ConfigMap.Name)
		out := map[string][]byte{}
		for _, item := range source.ConfigMap.Items {
			out[item.Path] = data[item.Key]
		}
		return errors.Join(err, writeFiles(dir, out))
	}
	return nil
}

// tokenSeconds is how long a token is valid: a process cannot get a new one.
const tokenSeconds = 24 * 3600

func (r *Runner) requestToken(ctx context.Context, pod *corev1.Pod) (string, error) {
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = pod.Namespace, pod.Spec.ServiceAccountName
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(tokenSeconds)),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	if err := r.Hub.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("getting a token of service account %s: %w", account.Name, err)
	}
	return request.Status.Token, nil
}

func (r *Runner) readSecretData(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	var s corev1.Secret
	err := r.Hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &s)
	return s.Data, err
}

func (r *Runner) readConfigMapData(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	var m corev1.ConfigMap
	err := r.Hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &m)
	data := map[string][]byte{}
	for key, value := range m.Data {
		data[key] = []byte(value)
	}
	for key, value := range m.BinaryData {
		data[key] = value
	}
	return data, err
}

func writeFiles(dir string, data map[string][]byte) error {
	for name, content := range data {
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// resolveEnvVar returns the value of a variable; false if it is optional and has none.
func (r *Runner) resolveEnvVar(ctx context.Context, pod *corev1.Pod, e corev1.EnvVar) (string, bool, error) {
	from := e.ValueFrom
	switch {
	case from == nil:
		return e.Value, true, nil
	case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.name":
		return pod.Name, true, nil
	case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace":
		return pod.Namespace, true, nil
	case from.SecretKeyRef != nil:
		data, err := r.readSecretData(ctx, pod.Namespace, from.SecretKeyRef.Name)
		return selectOptionalKey(data, err, from.SecretKeyRef.Key, from.SecretKeyRef.Optional)
	case from.ConfigMapKeyRef != nil:
		data, err := r.readConfigMapData(ctx, pod.Namespace, from.ConfigMapKeyRef.Name)
		return selectOptionalKey(data, err, from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Optional)
	}
	return "", false, errors.New("its valueFrom needs a node, and this pod runs without one: set a value")
}

func selectOptionalKey(data map[string][]byte, err error, key string, optional *bool) (string, bool, error) {
	value, ok := data[key]
	switch {
	case ok:
		return string(value), true, nil
	case ptr.Deref(optional, false) && (err == nil || apierrors.IsNotFound(err)):
		return "", false, nil
	case err != nil:
		return "", false, err
	}
	return "", false, fmt.Errorf("key %s does not exist", key)
}
