package main

import (
	"context"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/internal/install/job"
	"hotspare.io/hotspare/internal/platform"
)

const (
	// programPath is the path of this program in its image: see Containerfile.
	programPath = "/hotspare-manager"
	// managerContainer is the container of this program in its pod, which may have other containers.
	managerContainer = "manager"
)

// jobOptions returns the options of Jobs that install clusters; nil if no image with this program is
// known, so that no clusters are installed.
func (f *flags) jobOptions(ctx context.Context, log logr.Logger, cfg *rest.Config) (*job.Options, error) {
	image := f.image
	pod := types.NamespacedName{Namespace: os.Getenv(podNamespace), Name: os.Getenv(podName)}
	if image == "" && pod.Name != "" {
		c, err := client.New(cfg, client.Options{Scheme: platform.JobScheme()})
		if err != nil {
			return nil, fmt.Errorf("making a client to look up the image: %w", err)
		}
		if image, err = readPodImage(ctx, c, pod); err != nil {
			return nil, err
		}
	}
	if image == "" {
		log.Info("no clusters will be installed: set --image, or run the manager in a pod")
		return nil, nil
	}
	o := &job.Options{Image: image, Program: programPath, InstallerImage: f.installer}
	if f.installerUser != anyUser {
		o.RunAsUser = &f.installerUser
	}
	return o, nil
}

// readPodImage returns the image of the manager container of a pod.
func readPodImage(ctx context.Context, c client.Reader, name types.NamespacedName) (string, error) {
	var pod corev1.Pod
	if err := c.Get(ctx, name, &pod); err != nil {
		return "", fmt.Errorf("looking up the image of pod %s (or set --image): %w", name, err)
	}
	for _, one := range pod.Spec.Containers {
		if one.Name == managerContainer {
			return one.Image, nil
		}
	}
	return "", fmt.Errorf("pod %s has no container %s: set --image", name, managerContainer)
}
