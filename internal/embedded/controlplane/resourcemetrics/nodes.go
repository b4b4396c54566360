package resourcemetrics

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// measuredNodes lists the nodes whose kubelets are asked. metrics-server would log an error for each
// other node every time.
type measuredNodes struct {
	corelisters.NodeLister
	isMeasured func(*corev1.Node) bool
}

// List returns the nodes that are ready and measured.
func (m measuredNodes) List(selector labels.Selector) ([]*corev1.Node, error) {
	all, err := m.NodeLister.List(selector)
	return slices.DeleteFunc(all, func(n *corev1.Node) bool { return !isReady(n) || !m.isMeasured(n) }), err
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
