package capi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/clusterapi"
)

var nodes = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

// inMemoryPower gives the machines of the in-memory backend power: a machine runs if its node is
// ready.
type inMemoryPower struct {
	hub       dynamic.Interface
	instances []cloud.Instance
}

func (p inMemoryPower) ForInstances(list []cloud.Instance) (cloud.Actuator, error) {
	p.instances = list
	return p, nil
}

func (p inMemoryPower) Observe(ctx context.Context, ref cloud.Ref) (cloud.Machines, error) {
	c, err := spokeClient(ctx, p.hub, ref)
	if err != nil {
		return nil, err
	}
	var ms cloud.Machines
	for _, i := range p.instances {
		node, err := c.Resource(nodes).Get(ctx, nodeName(i), metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading node %s: %w", nodeName(i), err)
		}
		m := cloud.Machine{Name: i.Name, ControlPlane: i.ControlPlane, ProviderID: i.ProviderID, State: cloud.Stopped}
		if isReady(node) {
			m.State = cloud.Running
		}
		ms = append(ms, m)
	}
	return ms, nil
}

func (p inMemoryPower) Start(ctx context.Context, ref cloud.Ref) error {
	return p.set(ctx, ref, "True")
}

func (p inMemoryPower) Stop(ctx context.Context, ref cloud.Ref) error {
	return p.set(ctx, ref, "False")
}

// set sets the condition Ready of the nodes.
func (p inMemoryPower) set(ctx context.Context, ref cloud.Ref, ready string) error {
	c, err := spokeClient(ctx, p.hub, ref)
	if err != nil {
		return err
	}
	for _, i := range p.instances {
		if err := patchReady(ctx, c, nodeName(i), ready); err != nil {
			return fmt.Errorf("switching node %s: %w", nodeName(i), err)
		}
	}
	return nil
}

// patchReady sets condition Ready of a node, with a heartbeat. It keeps the other conditions, without
// which Cluster API does not take the node for healthy.
func patchReady(ctx context.Context, c dynamic.Interface, name, ready string) error {
	node, err := c.Resource(nodes).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	now := time.Now().UTC().Format(time.RFC3339)
	list, _, _ := unstructured.NestedSlice(node.Object, "status", "conditions")
	for _, item := range list {
		if condition, _ := item.(map[string]any); condition["type"] == "Ready" {
			condition["status"], condition["reason"], condition["lastTransitionTime"], condition["lastHeartbeatTime"] = ready, "Power", now, now
		}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": list}})
	if err != nil {
		return err
	}
	_, err = c.Resource(nodes).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// nodeName returns the name of the node of an instance, which the backend derives from the machine.
func nodeName(i cloud.Instance) string { return strings.TrimPrefix(i.ProviderID, "in-memory://") }

func isReady(node *unstructured.Unstructured) bool { return clusterapi.IsTrue(node, "Ready") }

// spokeClient returns a client of a cluster's own API.
func spokeClient(ctx context.Context, hub dynamic.Interface, ref cloud.Ref) (dynamic.Interface, error) {
	name := clusterapi.KubeconfigSecret(ref.InfraID)
	secret, err := hub.Resource(clusterapi.Secrets).Namespace(ref.Cluster.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	text, _, _ := unstructured.NestedString(secret.Object, "data", clusterapi.KubeconfigKey)
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(cfg)
}
