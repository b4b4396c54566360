package simulate

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestATraceHasALargestNumberOfClaims(t *testing.T) {
	read := func(most int) error {
		_, err := (&traceReader{file: "t.csv", mostClaims: most}).readAll(strings.NewReader("created\n2026-01-01T00:00:00Z\n2026-01-02T00:00:00Z\n"))
		return err
	}
	if err := read(2); err != nil {
		t.Error(err)
	}
	if err := read(1); err == nil || !strings.Contains(err.Error(), "t.csv has more than 1 claims: split it") {
		t.Error(err)
	}
	if maxClaims != 50_000_000 {
		t.Errorf("docs/sizing-inputs.md says fifty million, not %d", maxClaims)
	}
}

// BenchmarkReadTrace reads ten million lines.
func BenchmarkReadTrace(b *testing.B) {
	var text bytes.Buffer
	text.WriteString("created,held_seconds\n")
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 10_000_000 {
		at = at.Add(3 * time.Second)
		text.Write(at.AppendFormat(nil, time.RFC3339))
		text.WriteString(",60\n")
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if trace, err := ReadTrace("t.csv", bytes.NewReader(text.Bytes())); err != nil || len(trace.Claims) != 10_000_000 {
			b.Fatal(err)
		}
	}
}
