// Package diagnostics describes what is kept of a cluster that failed: a bundle of files, from which a Scrubber has
// removed what is secret.
//
// A bundle is a tar.gz file that is sent to others, so nothing enters it unscrubbed: Bundle has no method that adds
// raw bytes. A part that could not be read is a Gap of the bundle, never an error: the other parts are worth having
// without it.
package diagnostics

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// Limits bound the size of a bundle before it is compressed.
type Limits struct {
	// File is the maximum number of bytes of one file, and Total of all files. What exceeds File is cut out; a
	// file that exceeds Total is left out.
	File, Total int
}

// DefaultLimits are the limits of the bundles that hotspare writes.
var DefaultLimits = Limits{File: 1 << 20, Total: 16 << 20}

const (
	// maxLines is the maximum number of findings, and of gaps, in the summary.
	maxLines = 60
	// maxName is the maximum length of an element of the name of a file.
	maxName = 200
)

// SummaryName is the name of the file that a person reads first.
const SummaryName = "summary.txt"

// Subject says which cluster a bundle is about, and why the bundle was collected.
type Subject struct {
	// Namespace, Name and UID are those of the ClusterDeployment.
	Namespace, Name, UID string
	// Cause says in one line why the bundle was collected.
	Cause string
	// At is when the bundle was collected.
	At time.Time
}

// File is a file of a bundle.
type File struct {
	Name    string
	Content []byte
}

// Gap is a part that a bundle lacks, and the reason.
type Gap struct{ Part, Reason string }

// Bundle collects scrubbed files. It is not safe for concurrent use.
type Bundle struct {
	Subject  Subject
	limits   Limits
	scrubber *Scrubber
	files    []File
	gaps     []Gap
	notes    []string
	size     int
}

// NewBundle returns an empty bundle whose files scrubber scrubs. If scrubber withholds texts, AddLog, AddText and AddNote
// add nothing, and a gap says why.
func NewBundle(s Subject, l Limits, scrubber *Scrubber) *Bundle {
	b := &Bundle{Subject: s, limits: l, scrubber: scrubber}
	if scrubber.withholds != "" {
		b.AddGap("logs, events, messages and specs", "values of Secrets could not be removed from them, because "+scrubber.withholds)
	}
	return b
}

// AddLog adds the end of a text, such as a log. An empty text adds no file.
func (b *Bundle) AddLog(name, text string) {
	if b.scrubber.withholds != "" {
		return
	}
	if text = b.scrubber.Text(text); strings.TrimSpace(text) != "" {
		b.addFile(name, keepEnd(text, b.limits.File))
	}
}

// AddText adds the beginning of a text. An empty text adds no file.
func (b *Bundle) AddText(name, text string) {
	if b.scrubber.withholds != "" {
		return
	}
	if text = b.scrubber.Text(text); strings.TrimSpace(text) != "" {
		b.addFile(name, keepBeginning(text, b.limits.File))
	}
}

// AddObject adds objects as YAML documents, without the values of Secrets. Objects are values whose JSON is an
// object.
func (b *Bundle) AddObject(name string, objects ...any) {
	var out strings.Builder
	for i, o := range objects {
		plain, err := b.scrubber.Object(o)
		if err != nil {
			b.AddGap(name, err.Error())
			return
		}
		raw, err := yaml.Marshal(plain)
		if err != nil {
			b.AddGap(name, err.Error())
			return
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(raw)
	}
	if out.Len() > 0 {
		b.addFile(name, keepBeginning(b.scrubber.knownOnly(out.String()), b.limits.File))
	}
}

// AddGap records that a part could not be collected.
func (b *Bundle) AddGap(part, reason string) {
	if len(b.gaps) == maxLines {
		b.gaps = append(b.gaps, Gap{"more", "not listed"})
	}
	if len(b.gaps) > maxLines {
		return
	}
	b.gaps = append(b.gaps, Gap{joinLines(b.scrubber.knownOnly(part)), joinLines(b.scrubber.scrubError(reason))})
}

// AddNote adds a line to the findings in the summary.
func (b *Bundle) AddNote(format string, args ...any) {
	if b.scrubber.withholds != "" {
		return
	}
	if len(b.notes) == maxLines {
		b.notes = append(b.notes, "more, not listed")
	}
	if len(b.notes) > maxLines {
		return
	}
	b.notes = append(b.notes, joinLines(b.scrubber.Text(fmt.Sprintf(format, args...))))
}

// joinLines returns text as one line.
func joinLines(text string) string { return strings.Join(strings.Fields(text), " ") }

func (b *Bundle) addFile(name, text string) {
	name = b.cleanName(name)
	if b.size+len(text) > b.limits.Total {
		b.AddGap(name, fmt.Sprintf("the bundle would exceed %d bytes", b.limits.Total))
		return
	}
	b.size += len(text)
	b.files = append(b.files, File{name, []byte(text)})
}

// unsafe matches what the name of a file may not contain: parts of names come from clusters, which may return
// anything.
var unsafe = regexp.MustCompile(`[^A-Za-z0-9._-]+|^\.+`)

// cleanName returns a name of a file of the bundle that stays in its folder, contains no secret, and is not taken.
func (b *Bundle) cleanName(name string) string {
	var parts []string
	for part := range strings.SplitSeq(b.scrubber.knownOnly(name), "/") {
		if part = unsafe.ReplaceAllString(part, "_"); part != "" {
			parts = append(parts, part[:min(len(part), maxName)])
		}
	}
	clean := strings.Join(parts, "/")
	for n, taken := 2, clean; slices.ContainsFunc(b.files, func(f File) bool { return f.Name == clean }); n++ {
		clean = fmt.Sprintf("%s.%d", taken, n)
	}
	return clean
}

// Files returns the files of the bundle, the summary first and the others by name.
func (b *Bundle) Files() []File {
	files := slices.Clone(b.files)
	slices.SortStableFunc(files, func(x, y File) int { return cmp.Compare(x.Name, y.Name) })
	return append([]File{{SummaryName, []byte(b.summarize(files))}}, files...)
}

// Gaps returns the parts that the bundle lacks.
func (b *Bundle) Gaps() []Gap { return slices.Clone(b.gaps) }

// FolderName is the name of the folder in the archive, and of the archive's file without its extension.
func (b *Bundle) FolderName() string {
	return b.Subject.Name + "-" + b.Subject.At.UTC().Format("20060102T150405Z")
}

// WriteTo writes the bundle as a tar.gz archive with one folder, and returns the number of bytes written.
func (b *Bundle) WriteTo(w io.Writer) (int64, error) {
	counted := &countingWriter{to: w}
	packed := gzip.NewWriter(counted)
	archive := tar.NewWriter(packed)
	for _, f := range b.Files() {
		header := &tar.Header{
			Name: b.FolderName() + "/" + f.Name, Mode: 0o600, Size: int64(len(f.Content)), ModTime: b.Subject.At, Typeflag: tar.TypeReg,
		}
		if err := archive.WriteHeader(header); err != nil {
			return counted.n, fmt.Errorf("writing the bundle: %w", err)
		}
		if _, err := archive.Write(f.Content); err != nil {
			return counted.n, fmt.Errorf("writing the bundle: %w", err)
		}
	}
	if err := archive.Close(); err != nil {
		return counted.n, fmt.Errorf("writing the bundle: %w", err)
	}
	if err := packed.Close(); err != nil {
		return counted.n, fmt.Errorf("writing the bundle: %w", err)
	}
	return counted.n, nil
}

type countingWriter struct {
	to io.Writer
	n  int64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.n += int64(n)
	return n, err
}

// keepEnd returns the last bytes of text, from the beginning of a line if possible.
func keepEnd(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	cut := len(text) - limit
	kept := text[cut:]
	if _, after, found := strings.Cut(kept, "\n"); found && after != "" {
		kept = after
	}
	return fmt.Sprintf("[the first %d bytes were left out]\n%s", len(text)-len(kept), trimPartialRune(kept))
}

// trimPartialRune removes the rest of a character that was cut in two.
func trimPartialRune(text string) string {
	for text != "" && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}

// keepBeginning returns the first bytes of text.
func keepBeginning(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	kept := strings.ToValidUTF8(text[:limit], "")
	return fmt.Sprintf("%s\n[%d bytes were left out]\n", kept, len(text)-len(kept))
}
