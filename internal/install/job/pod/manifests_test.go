package pod

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/install/config"
	"hotspare.io/hotspare/internal/install/job/state"
)

// patched returns the patches of one customization, as encoded in the state.
func patched(glob, path, value string) []byte {
	return fmt.Appendf(nil, `[{"customization":"a","patches":[{"manifestSelector":{"glob":%q},"patches":[{"op":"add","path":%q,"value":%s}]}]}]`, glob, path, value)
}

func (b *bench) prepareWith(patches []byte) state.State {
	b.t.Helper()
	_, err := b.store().EditState(b.t.Context(), func(s *state.State) error { s.ManifestPatches = patches; return nil })
	must(b.t, err)
	o := b.options()
	o.Manifests = []string{b.t.TempDir()}
	must(b.t, os.WriteFile(filepath.Join(o.Manifests[0], "50-mine.yaml"), []byte("kind: Mine\nmetadata: {}\n"), 0o600))
	must(b.t, PrepareInstall(b.t.Context(), o))
	return b.state()
}

func TestManifestsArePatchedBeforeTheirClusterIsMade(t *testing.T) {
	b := newBench(t)
	s := b.prepareWith(patched("[mo]*/*", "/metadata/labels", `{"mine":"yes"}`))
	want(t, state.Prepared, s.Phase)
	must(t, CreateCluster(t.Context(), b.options()))
	ignition := b.cloud.ReadIgnition(b.cloud.ListClusters()[0])
	for _, name := range []string{"cluster-config.yaml", "50-mine.yaml", "99_kubeadmin.yaml"} {
		_, after, found := strings.Cut(ignition, name+": ")
		if !found || !strings.Contains(strings.SplitN(after, ".yaml: ", 2)[0], "mine: \"yes\"") {
			t.Errorf("%s is not patched in\n%s", name, ignition)
		}
	}
	want(t, 0, len(b.state().ManifestPatches))
}

func TestPatchesThatDoNotFitTheManifests(t *testing.T) {
	for name, c := range map[string]struct {
		patches []byte
		says    string
	}{
		"a glob that selects nothing": {
			patched("openshift/99_machines-*.yaml", "/a", "1"),
			`customization a: installerManifestPatches[0].manifestSelector.glob: "openshift/99_machines-*.yaml" selects none of the manifests`,
		},
		"a path that is not there": {
			patched("openshift/*", "/spec/size", `"planted-token"`),
			`manifest openshift/99_kubeadmin.yaml: patches[0]: add /spec/size: no such path`,
		},
		"a glob of folders alone": {patched("openshift/more*", "/a", "1"), `"openshift/more*" selects none of the manifests`},
		"a glob outside":          {patched("../*", "/a", "1"), `"../*" selects no manifests`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.prepareWith(c.patches)
			want(t, "Failed "+state.ReasonInvalid, string(s.Phase)+" "+s.Reason)
			lines := strings.Split(strings.TrimSpace(s.Log), "\n")
			if last := lines[len(lines)-1]; !strings.Contains(last, c.says) {
				t.Errorf("the last line does not say %q: %s", c.says, last)
			}
		})
	}
}

func TestValuesOfPatchesThatAreSecretAreHidden(t *testing.T) {
	b := newBench(t)
	p, err := newInstallerRun(b.options())
	must(t, err)
	list, err := config.DecodeManifestPatches([]byte(`[{"customization":"a","patches":[{"manifestSelector":{"glob":"openshift/x"},"patches":[
		{"op":"add","path":"/data/password","value":"hush-1-hush"}, {"op":"add","path":"/data","valueJSON":"{\"apiToken\":\"hush-2-hush\"}"}, {"op":"remove","path":"/a"}]}]}]`))
	must(t, err)
	p.hidePatchSecrets(list[0].Patches[0].Patches)
	_, err = p.log.Write([]byte("a hush-1-hush b hush-2-hush c\n"))
	must(t, err)
	if told := b.out.text(); strings.Contains(told, "hush") || !strings.Contains(told, "a REDACTED b REDACTED c") {
		t.Errorf("it tells %s", told)
	}
}
