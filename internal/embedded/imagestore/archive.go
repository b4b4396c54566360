package imagestore

import (
	"archive/tar"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

const saveAgain = "create it again, for example with: docker save"

// archive is a source: a tar file, which stays where it is and is never unpacked.
type archive struct {
	file    *os.File
	entries map[string]entry
}

// entry is a regular file of an archive, or a link to one.
type entry struct {
	offset, length int64
	link           string
}

// openArchive reads the table of contents of an archive. It uncompresses an archive into a file of
// the store that has no name, so that nothing stays behind.
func (s *Store) openArchive(ctx context.Context, file string) (*archive, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	a, err := s.indexFile(ctx, f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return a, nil
}

// indexFile takes over the file if it returns no error.
func (s *Store) indexFile(ctx context.Context, f *os.File) (*archive, error) {
	compression, err := detectCompression(f)
	if err != nil {
		return nil, err
	}
	switch compression {
	case "":
		return indexArchive(ctx, f)
	case "gzip":
	default:
		return nil, fmt.Errorf("the archive is compressed with %s, which is not supported: uncompress it first, or compress it with gzip", compression)
	}
	plain, err := s.uncompress(ctx, f)
	if err != nil {
		return nil, err
	}
	a, err := indexArchive(ctx, plain)
	if err != nil {
		return nil, errors.Join(err, plain.Close())
	}
	return a, f.Close()
}

// compressions are the first bytes of compressed files.
var compressions = map[string][]byte{
	"gzip": {0x1f, 0x8b}, "zstd": {0x28, 0xb5, 0x2f, 0xfd}, "xz": {0xfd, '7', 'z', 'X', 'Z'}, "bzip2": []byte("BZh"), "zip": []byte("PK\x03\x04"),
}

// detectCompression returns the name of the compression; "" if there is none.
func detectCompression(f io.ReaderAt) (string, error) {
	start := make([]byte, 8)
	n, err := f.ReadAt(start, 0)
	if n == 0 && errors.Is(err, io.EOF) {
		return "", errors.New("the file is empty: " + saveAgain)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	for name, magic := range compressions {
		if bytes.HasPrefix(start[:n], magic) {
			return name, nil
		}
	}
	return "", nil
}

func (s *Store) uncompress(ctx context.Context, compressed io.Reader) (*os.File, error) {
	reader, err := gzip.NewReader(compressed)
	if err != nil {
		return nil, explainReadError(err)
	}
	if err = os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	plain, err := os.CreateTemp(s.dir, temporaryPrefix+"*")
	if err != nil {
		return nil, s.explainWriteError(err)
	}
	if err := os.Remove(plain.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) { // a sweep may be faster
		return nil, errors.Join(err, plain.Close())
	}
	in := &trackingReader{ctx: ctx, r: reader}
	if err = s.copyWhileSpace(ctx, plain, in); errors.Is(err, io.EOF) {
		_, err = plain.Seek(0, io.SeekStart)
	}
	switch {
	case in.err != nil:
		err = explainReadError(in.err)
	case err != nil:
		err = s.explainWriteError(err)
	default:
		return plain, nil
	}
	return nil, errors.Join(err, plain.Close())
}

// indexArchive finds the files of an archive. The file must be at its start.
func indexArchive(ctx context.Context, f *os.File) (*archive, error) {
	a := &archive{file: f, entries: map[string]entry{}}
	reader := tar.NewReader(f)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, explainReadError(err)
		}
		offset, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		if err := a.addEntry(header, offset); err != nil {
			return nil, err
		}
	}
	if len(a.entries) == 0 {
		return nil, errors.New("the archive contains no files: " + saveAgain)
	}
	return a, nil
}

func (a *archive) addEntry(header *tar.Header, offset int64) error {
	name := path.Clean(header.Name)
	if !fs.ValidPath(name) {
		return fmt.Errorf("the archive contains %q, which is outside of the archive: use an archive from a source that you trust", header.Name)
	}
	if header.Typeflag == tar.TypeGNUSparse || header.PAXRecords["GNU.sparse.name"] != "" {
		return fmt.Errorf("the archive contains %q as a sparse file: create the archive without the option --sparse of tar", header.Name)
	}
	switch header.Typeflag {
	case tar.TypeReg:
		a.entries[name] = entry{offset: offset, length: header.Size}
	case tar.TypeSymlink, tar.TypeLink:
		target := header.Linkname // of a hard link: from the top of the archive
		if header.Typeflag == tar.TypeSymlink && !path.IsAbs(target) {
			target = path.Join(path.Dir(name), target)
		}
		if target = path.Clean(target); !fs.ValidPath(target) {
			return fmt.Errorf("the archive contains a link from %q to %q, which is outside of the archive: use an archive from a source that you trust", header.Name, header.Linkname)
		}
		a.entries[name] = entry{link: target}
	}
	return nil
}

// find follows one link: docker save writes links for layers that two images share.
func (a *archive) find(name string) (entry, error) {
	e, exists := a.entries[path.Clean(name)]
	if exists && e.link != "" {
		target := a.entries[e.link]
		if target.link != "" {
			return entry{}, fmt.Errorf("%s is a link to a link: %s", name, saveAgain)
		}
		_, exists = a.entries[e.link]
		e = target
	}
	if !exists {
		return entry{}, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return e, nil
}

func (a *archive) size(name string) (int64, error) {
	e, err := a.find(name)
	return e.length, err
}

func (a *archive) open(name string) (io.ReadCloser, error) {
	e, err := a.find(name)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(io.NewSectionReader(a.file, e.offset, e.length)), nil
}

func (a *archive) close() error { return a.file.Close() }

// explainReadError says what is wrong with an archive that cannot be read to its end.
func explainReadError(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return fmt.Errorf("the archive is truncated: copy it again, or %s", saveAgain)
	case errors.Is(err, tar.ErrHeader):
		return errors.New("the file is not an image archive, or it is damaged: specify an archive of docker save, an OCI archive or the folder of an OCI image layout")
	case errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.As(err, new(flate.CorruptInputError)):
		return fmt.Errorf("the compressed archive is damaged (%w): copy it again, or %s", err, saveAgain)
	}
	return err
}

// trackingReader ends with its context, and remembers the error of the reader, which io.Copy does not
// distinguish from an error of the writer.
type trackingReader struct {
	ctx context.Context
	r   io.Reader
	err error
}

func (t *trackingReader) Read(p []byte) (int, error) {
	if t.err = t.ctx.Err(); t.err != nil {
		return 0, t.err
	}
	n, err := t.r.Read(p)
	if !errors.Is(err, io.EOF) {
		t.err = err
	}
	return n, err
}
