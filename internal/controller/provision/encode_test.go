package provision

import (
	"bytes"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Earlier versions stored plain text. One such attempt keeps a client with Hive's types
// from reading any list of attempts.
func TestPlainMetadataIsStoredInBase64(t *testing.T) {
	w := newWorld(t, request()...)
	w.drive("installed", w.installed)
	cp := w.attempts()[0]
	want := bytes.Clone(cp.Spec.MetadataJSON.Raw)
	before := cp.DeepCopy()
	cp.Spec.MetadataJSON.Plain = true
	if err := w.live.Patch(t.Context(), &cp, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if now := w.attempts()[0]; !now.Spec.MetadataJSON.Plain {
		t.Fatal("the text of an earlier version is not there")
	}
	w.catchUp()
	w.mustPass()
	now := w.attempts()[0]
	wantEqual(t, false, now.Spec.MetadataJSON.Plain)
	wantEqual(t, string(want), string(now.Spec.MetadataJSON.Raw))
	writes := len(w.writes)
	w.catchUp()
	w.mustPass()
	wantEqual(t, writes, len(w.writes))
}
