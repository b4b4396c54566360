package customization

import (
	"context"
	"encoding/json"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/inventory/lease"
	"hotspare.io/hotspare/internal/kstatus/kstatustest"
)

// made returns a customization as the API server makes it: with the status that the schema
// defaults.
func made(change func(*hivev1.ClusterDeploymentCustomization)) *hivev1.ClusterDeploymentCustomization {
	c := newSlot(slot.Name)
	c.Generation, c.Status.ObservedGeneration = 1, -1
	c.Spec.InstallConfigPatches = []hivev1.PatchEntity{{Op: "remove", Path: "/a"}}
	if change != nil {
		change(c)
	}
	return c
}

// TestHowToolsThatWaitJudgeACustomization has the controller report.
func TestHowToolsThatWaitJudgeACustomization(t *testing.T) {
	kstatustest.ExpectStatus(t, made(nil), "InProgress LatestGenerationNotObserved")
	inUse := func(change func(*hivev1.ClusterDeployment)) []client.Object {
		c := leased(slot.Name, "x")
		c.Generation, c.Finalizers = 1, []string{hivev1.FinalizerLease}
		cd := newCluster("x", "p", slot.Name)
		if change != nil {
			change(cd)
		}
		return []client.Object{c, cd}
	}
	// free has no cluster any longer; the last one was made with the patches of now.
	free := func(change func(*hivev1.ClusterDeploymentCustomization)) []client.Object {
		return []client.Object{made(func(c *hivev1.ClusterDeploymentCustomization) {
			raw, err := json.Marshal(c.Spec)
			if err != nil {
				t.Fatal(err)
			}
			c.Status.LastAppliedConfiguration = string(raw)
			lease.Release(c, noon)
			change(c)
		})}
	}
	edited := func(c *hivev1.ClusterDeploymentCustomization) {
		c.Generation, c.Spec.InstallConfigPatches[0].Path = 2, "/b"
	}
	broken := func(c *hivev1.ClusterDeploymentCustomization) {
		lease.SetApplySucceeded(c, hivev1.ReasonBrokenByCloud, lease.MessageInstallFailed, noon)
	}
	denounced := func(c *hivev1.ClusterDeploymentCustomization) {
		lease.ReportInvalid(c, "pool p: installConfigPatches[0]: there is no /a", noon)
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"a new one":                                {[]client.Object{made(nil)}, "Current"},
		"one whose cluster is being installed":     {inUse(nil), "InProgress InstallationPending"},
		"one whose cluster is installed":           {inUse(func(cd *hivev1.ClusterDeployment) { cd.Spec.Installed = true }), "Current"},
		"one whose cluster failed to install":      {inUse(func(cd *hivev1.ClusterDeployment) { stop(cd, noon) }), "Failed BrokenByCloud"},
		"one whose last cluster failed to install": {free(broken), "Failed BrokenByCloud"},
		"one that was changed after that":          {free(func(c *hivev1.ClusterDeploymentCustomization) { broken(c); edited(c) }), "Current"},
		"one whose patches do not apply":           {free(denounced), "Failed BrokenBySyntax"},
		"one that was corrected":                   {free(func(c *hivev1.ClusterDeploymentCustomization) { denounced(c); edited(c) }), "Current"},
		"one whose correction does not apply":      {free(func(c *hivev1.ClusterDeploymentCustomization) { edited(c); denounced(c) }), "Failed BrokenBySyntax"},
		"one whose last patches cannot be read": {free(func(c *hivev1.ClusterDeploymentCustomization) {
			broken(c)
			c.Status.LastAppliedConfiguration = "?"
		}), "Failed BrokenByCloud"},
	} {
		t.Run(name, func(t *testing.T) {
			counted := &counter{Client: newReader(t, append(tc.objects, newPool("p", 1))...)}
			got, _ := settle(t, counted)
			kstatustest.ExpectStatus(t, got, tc.want)
			if counted.writes != 1 {
				t.Errorf("it was written %d times", counted.writes)
			}
			got.Generation++
			kstatustest.ExpectStatus(t, got, "InProgress LatestGenerationNotObserved")
		})
	}
}

// TestACustomizationThatCannotBeReadNeedsAPerson has the controller report on one.
func TestACustomizationThatCannotBeReadNeedsAPerson(t *testing.T) {
	got, _ := settle(t, blurred{newReader(t, made(nil))})
	kstatustest.ExpectStatus(t, got, "Failed Unreadable")
}

// blurred has customizations that cannot be read whole.
type blurred struct{ client.Client }

func (b blurred) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	err := b.Client.Get(ctx, key, into, opts...)
	if c, ok := into.(*hivev1.ClusterDeploymentCustomization); ok {
		c.Unreadable = "spec.installConfigPatches: 7 is not a list"
	}
	return err
}
