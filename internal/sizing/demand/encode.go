package demand

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// maxBytes limits the size of the record.
const maxBytes = 75_000

// The first byte of a record. One with imported claims has another, because earlier versions of hotspare
// would take them for claims that were served in time.
const (
	formatVersion         = 1
	formatVersionImported = 2
)

// Flags of a bin, in the lowest bits of its number of claims.
const (
	flagWide = 1 << iota
	flagLate
	flagPeak
	flagBits = iota
)

// errRecord is what UnmarshalBinary returns for bytes that are not a record.
var errRecord = errors.New("these bytes are not a record of claims: delete it, and the counts are learned again")

// MarshalBinary returns the record, without its oldest bins if it would be too large.
func (h *History) MarshalBinary() ([]byte, error) {
	for drop := 0; ; drop += max(1, (len(h.bins)-drop)/20) {
		if out := h.encode(min(drop, len(h.bins))); len(out) <= maxBytes || drop >= len(h.bins) {
			return out, nil
		}
	}
}

func (h *History) encode(drop int) []byte {
	out := []byte{formatVersion}
	if h.imported > 0 {
		out = binary.AppendVarint([]byte{formatVersionImported}, h.imported)
	}
	bins := h.bins[drop:]
	out = binary.AppendUvarint(out, uint64(len(bins)))
	last := int64(0)
	for _, b := range bins {
		out = binary.AppendVarint(out, b.Start-last)
		last = b.Start
		flags := uint64(0)
		if b.Wide {
			flags |= flagWide
		}
		if b.Late > 0 {
			flags |= flagLate
		}
		if b.Peak != 1 {
			flags |= flagPeak
		}
		out = binary.AppendUvarint(out, uint64(b.Claims)<<flagBits|flags)
		if b.Late > 0 {
			out = binary.AppendUvarint(out, uint64(b.Late))
		}
		if b.Peak != 1 {
			out = binary.AppendUvarint(out, uint64(b.Peak))
		}
	}
	out = binary.AppendUvarint(out, uint64(len(h.gaps)))
	for _, g := range h.gaps {
		out = binary.AppendVarint(out, g.From.Unix())
		out = binary.AppendVarint(out, g.To.Unix())
	}
	seen := h.seen[max(0, len(h.seen)-maxSeen/4):] // enough for what arrives around a restart
	out = binary.AppendUvarint(out, uint64(len(seen)))
	for _, key := range seen {
		out = binary.LittleEndian.AppendUint64(out, key)
	}
	return out
}

// reader reads numbers until the first error.
type reader struct {
	left []byte
	bad  bool
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.left)
	if n <= 0 {
		r.bad, r.left = true, nil
		return 0
	}
	r.left = r.left[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.left)
	if n <= 0 {
		r.bad, r.left = true, nil
		return 0
	}
	r.left = r.left[n:]
	return v
}

// count reads the number of entries, each of which takes at least size bytes.
func (r *reader) count(size int) int {
	n := r.uvarint()
	if n > uint64(len(r.left)/size) {
		r.bad = true
		return 0
	}
	return int(n)
}

func (r *reader) uint32() uint32 {
	v := r.uvarint()
	if v > math.MaxUint32 {
		r.bad = true
	}
	return uint32(v)
}

// UnmarshalBinary reads what MarshalBinary has written. After an error h is empty.
func (h *History) UnmarshalBinary(data []byte) error {
	*h = History{}
	if len(data) == 0 || data[0] != formatVersion && data[0] != formatVersionImported {
		return errRecord
	}
	r := reader{left: data[1:]}
	var out History
	if data[0] == formatVersionImported {
		out.imported = r.varint()
		r.bad = r.bad || out.imported <= 0 || out.imported > math.MaxInt64/quarter
	}
	last := int64(0)
	for range r.count(2) {
		b := r.bin(last)
		if len(out.bins) > 0 && b.Start <= last {
			r.bad = true
		}
		last = b.Start
		out.bins = append(out.bins, b)
	}
	for range r.count(2) {
		out.AddGap(time.Unix(r.varint(), 0), time.Unix(r.varint(), 0))
	}
	for range r.count(8) {
		out.seen = append(out.seen, binary.LittleEndian.Uint64(r.left))
		r.left = r.left[8:]
	}
	if r.bad || len(r.left) > 0 {
		return fmt.Errorf("reading %d bytes: %w", len(data), errRecord)
	}
	out.bins = slices.Clip(out.bins)
	*h = out
	return nil
}

func (r *reader) bin(last int64) Bin {
	b := Bin{Start: last + r.varint(), Peak: 1}
	v := r.uvarint()
	b.Wide = v&flagWide != 0
	if v>>flagBits > math.MaxUint32 {
		r.bad = true
	}
	b.Claims = uint32(v >> flagBits)
	if v&flagLate != 0 {
		b.Late = r.uint32()
	}
	if v&flagPeak != 0 {
		b.Peak = r.uint32()
	}
	return b
}
