package diagnostics_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/diagnostics"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newBundle(l diagnostics.Limits, secrets ...corev1.Secret) *diagnostics.Bundle {
	return diagnostics.NewBundle(diagnostics.Subject{Namespace: "n", Name: "c", Cause: "a gate fails", At: noon}, l, diagnostics.NewScrubber(secrets...))
}

func secret(data map[string]string) corev1.Secret {
	s := corev1.Secret{Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	return s
}

// unpack returns the files of a bundle by name.
func unpack(t *testing.T, b *diagnostics.Bundle) map[string]string {
	t.Helper()
	var raw bytes.Buffer
	n, err := b.WriteTo(&raw)
	if err != nil || n != int64(raw.Len()) {
		t.Fatalf("%d bytes of %d written, %v", n, raw.Len(), err)
	}
	unpacked, err := gzip.NewReader(&raw)
	if err != nil {
		t.Fatal(err)
	}
	out, archive := map[string]string{}, tar.NewReader(unpacked)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(h.Name, b.FolderName()+"/")
		if _, twice := out[name]; !ok || twice || h.Mode != 0o600 {
			t.Errorf("file %s, mode %o, was there before: %t", h.Name, h.Mode, twice)
		}
		out[name] = string(content)
	}
}

func TestTheSummarySaysWhatIsThereAndWhatIsNot(t *testing.T) {
	b := newBundle(diagnostics.Limits{File: 1000, Total: 1500})
	b.AddNote("%d of %d nodes are ready", 1, 2)
	b.AddLog("logs/a.log", strings.Repeat("0123456789\n", 200))
	b.AddText("events.txt", strings.Repeat("é", 900))
	b.AddText("empty.txt", "\n")
	b.AddGap("the cluster's API", "connection\nrefused")
	files := unpack(t, b)
	for _, want := range []string{
		"Diagnostics of cluster n/c\nCause:     a gate fails\nCollected: 2026-03-01T12:00:00Z\n", "  1 of 2 nodes are ready\n",
		"  events.txt: the bundle would exceed 1500 bytes\n", "  the cluster's API: connection refused\n", "  logs/a.log\n",
	} {
		if !strings.Contains(files[diagnostics.SummaryName], want) {
			t.Errorf("the summary lacks %q:\n%s", want, files[diagnostics.SummaryName])
		}
	}
	if log := files["logs/a.log"]; len(files) != 2 || !strings.HasPrefix(log, "[the first ") || !strings.Contains(log, "]\n0123456789\n") || len(log) > 1050 {
		t.Errorf("%d files, a log of %d bytes: %.60q", len(files), len(log), log)
	}
}

// Parts of names come from clusters, whose answers may contain anything.
func TestNoNameLeavesTheFolder(t *testing.T) {
	b := newBundle(diagnostics.DefaultLimits)
	for _, name := range []string{"../../etc/passwd", "/etc/passwd", "a/../../b", "a\n/b", "c", "c", strings.Repeat("x", 500) + "/y"} {
		b.AddText(name, "x")
	}
	for name := range unpack(t, b) {
		if strings.HasPrefix(name, "/") || strings.Contains(name, "..") || strings.Contains(name, "\n") || len(name) > 300 {
			t.Errorf("a file has the name %q", name)
		}
	}
}

func TestObjectsLoseTheirSecretsOnly(t *testing.T) {
	b := newBundle(diagnostics.DefaultLimits, secret(map[string]string{"x": "opensesame", "username": "kubeadmin"}))
	cd := &hivev1.ClusterDeployment{}
	cd.Name = "kubeadmin"
	cd.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "somebody"}}
	cd.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "somebody", "note": "xopensesamex"}
	cd.Spec.ClusterMetadata = &hivev1.ClusterMetadata{InfraID: "c-x", AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: "the-ref"}}
	b.AddObject("a.yaml", cd, map[string]any{
		"kind": "Secret", "data": map[string]any{"a": "aGlkZGVu"},
	}, map[string]any{
		"env":  []any{map[string]any{"name": "MY_TOKEN", "value": "hidden"}, map[string]any{"name": "SIZE", "value": "shown"}},
		"auth": "hidden", "password": "hidden", "secretName": "shown", "other": "password=hidden",
	})
	got := unpack(t, b)["a.yaml"]
	for _, no := range []string{"hidden", "aGlkZGVu", "opensesame", "somebody", "managedFields"} {
		if strings.Contains(got, no) {
			t.Errorf("it contains %s", no)
		}
	}
	for _, yes := range []string{"note: xREDACTEDx", "name: kubeadmin", "infraID: c-x", "name: the-ref", "secretName: shown", "value: shown", "---\n"} {
		if !strings.Contains(got, yes) {
			t.Errorf("it lacks %s", yes)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

// Whatever Secrets contain, and wherever their values appear, no bundle has one.
func TestNoValueOfASecretIsInABundle(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	value := func() string {
		const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"
		raw := make([]byte, 8+r.IntN(60))
		for i := range raw {
			raw[i] = letters[r.IntN(len(letters))]
		}
		return string(raw)
	}
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	forms := []func(v string) string{
		func(v string) string { return v },
		func(v string) string { return v + "\n" },
		func(v string) string {
			return "-----BEGIN PRIVATE KEY-----\n" + v + "\n" + value() + "\n-----END PRIVATE KEY-----\n"
		},
		func(v string) string {
			return fmt.Sprintf(`{"auths":{"quay.io":{"auth":%q,"email":"a@b.c"}}}`, encode("user:"+v))
		},
		func(v string) string { return "[default]\naws_secret_access_key = " + v + "\n" },
		func(v string) string { return "A=b\nTOKEN=" + v + "\n" },
		func(v string) string {
			return fmt.Sprintf("apiVersion: v1\nkind: Config\nusers:\n- name: admin\n  user:\n    client-key-data: %s\n    token: %s\n", encode(v), v)
		},
		func(v string) string {
			return fmt.Sprintf("kind: ConfigMap\n---\nkind: Secret\ndata:\n  a: %s\nstringData:\n  b: %s\n", encode(v), v)
		},
		func(v string) string { return fmt.Sprintf("pullSecret: '{\"auths\":{\"x\":{\"password\":%q}}}'\n", v) },
	}
	for i := range 150 {
		v := value()
		form := r.IntN(len(forms))
		stored := forms[form](v)
		b := newBundle(diagnostics.DefaultLimits, secret(map[string]string{"key": stored, "other": value()}))
		used := []string{v, encode(stored), stored, encode(v)}[:2+r.IntN(2)]
		for j, text := range used {
			b.AddLog(fmt.Sprintf("log-%d", j), "it prints "+text+" and goes on")
			b.AddText("text", text)
			b.AddNote("a note %s", text)
			b.AddGap("gap "+text, "it failed: "+text)
			b.AddObject("o.yaml", map[string]any{"a": map[string]any{text: "x"}, "b": []any{text, "x" + text}, "c": strings.Repeat(" long", 30) + text})
		}
		for name, content := range unpack(t, b) {
			if strings.Contains(content, v) || strings.Contains(name, v) {
				t.Fatalf("history %d, form %d: %s contains %q of %q: %s", i, form, name, v, stored, content)
			}
			if strings.Contains(strings.Join(strings.Fields(content), ""), v) {
				t.Fatalf("history %d, form %d: %s contains %q over several lines", i, form, name, v)
			}
		}
	}
}

// Without the values of Secrets, nothing enters a bundle in which one could be.
func TestABundleThatWithholdsTexts(t *testing.T) {
	const text = "opensesame"
	b := diagnostics.NewBundle(diagnostics.Subject{Namespace: "n", Name: "c", Cause: text, At: noon}, diagnostics.DefaultLimits,
		diagnostics.NewWithholdingScrubber("Secret n/x is not known: connection refused"))
	b.AddLog("logs/a.log", text)
	b.AddText("events.txt", text)
	b.AddNote("it says %s", text)
	b.AddObject("a.yaml", map[string]any{
		"apiVersion": "v1", "kind": "A", "spec": map[string]any{"name": text},
		"metadata": map[string]any{"name": "a", "annotations": map[string]any{"x": text}, "labels": map[string]any{text: "x"}},
		"status": map[string]any{
			"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "Crash", "message": text}},
			"replicas":   3, "ready": true, "words": []any{text},
		},
	})
	files := unpack(t, b)
	want := "apiVersion: v1\nkind: A\nmetadata:\n  name: a\nstatus:\n  conditions:\n  - reason: Crash\n    status: \"False\"\n    type: Ready\n  ready: true\n  replicas: 3\n"
	if files["a.yaml"] != want || len(files) != 2 {
		t.Errorf("%d files, and the object is\n%s", len(files), files["a.yaml"])
	}
	summary := files[diagnostics.SummaryName]
	for _, want := range []string{
		"Cause:     [left out]\n", "  logs, events, messages and specs: values of Secrets could not be removed from them, because Secret n/x is not known: connection refused\n",
	} {
		if !strings.Contains(summary, want) {
			t.Errorf("the summary lacks %q", want)
		}
	}
	if strings.Contains(summary, text) || strings.Contains(summary, "Findings") {
		t.Errorf("the summary is\n%s", summary)
	}
}

func TestEventsAndConditionsAreInOrderOfTime(t *testing.T) {
	at := func(minutes int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute)) }
	event := func(name string, change func(*corev1.Event)) corev1.Event {
		e := corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: "Normal", Reason: name, Message: "a\nb", InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "p"}}
		change(&e)
		return e
	}
	events := diagnostics.FormatEvents([]corev1.Event{
		event("third", func(e *corev1.Event) {
			e.EventTime, e.Series = metav1.NewMicroTime(noon), &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(at(3).Time)}
		}),
		event("second", func(e *corev1.Event) { e.EventTime = metav1.NewMicroTime(at(2).Time) }),
		event("first", func(e *corev1.Event) { e.LastTimestamp = at(1) }),
		event("zeroth", func(e *corev1.Event) { e.CreationTimestamp = at(0) }),
	}, 3)
	const want = `2026-03-01T12:01:00Z  Normal  first                    Pod/p: a b
2026-03-01T12:02:00Z  Normal  second                   Pod/p: a b
2026-03-01T12:03:00Z  Normal  third                    Pod/p: a b (7 times)
`
	if events != want {
		t.Errorf("got\n%s", events)
	}
	conditions := []hivev1.Condition{
		{Type: hivev1.ClusterReady, Status: corev1.ConditionFalse, Reason: "R", Message: "later", LastTransitionTime: at(2)},
		{Type: hivev1.ClusterUnreachable, Status: corev1.ConditionFalse, Reason: "R", Message: "no failure", LastTransitionTime: at(3)},
		{Type: hivev1.ClusterProvisionFailed, Status: corev1.ConditionTrue, Reason: "R", Message: "earlier", LastTransitionTime: at(1)},
	}
	if got := strings.Join(diagnostics.Failures(conditions), "\n"); !strings.HasPrefix(got, "Ready is False since 2026-03-01T12:02:00Z: R: later\nProvisionFailed is True") || strings.Contains(got, "no failure") {
		t.Errorf("failures:\n%s", got)
	}
	if got := diagnostics.FormatConditions(conditions); strings.Index(got, "earlier") > strings.Index(got, "later") {
		t.Errorf("conditions:\n%s", got)
	}
}
