package pullthrough

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/go-logr/logr"
	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Folders of records. No component of a repository starts with "_".
const (
	registriesFolder   = "registries"
	repositoriesFolder = "repositories"
	temporaryFolder    = "tmp"

	tagsFolder     = "_tags"
	contentsFolder = "_contents"
	accessFolder   = "_access"
)

const (
	// unusedLife is how long records of deleted content are kept.
	unusedLife = 24 * time.Hour
	// accessLife is how long an access counts while a registry does not answer.
	accessLife = 30 * 24 * time.Hour
)

// anonymous is the identity of requests without credentials.
const anonymous = "anonymous"

// records are what is known about registries. They are hints: one that is lost or damaged costs a
// request to a registry.
type records struct {
	dir string
	key []byte
	now func() time.Time
}

// keyFile is the name of the file with the key.
const keyFile = "key"

// openRecords opens the records in dir. It creates the key if there is none, and replaces a damaged one: accesses that
// were recorded with that match no credentials any more.
func openRecords(dir string, now func() time.Time, log logr.Logger) (*records, error) {
	r := &records{dir: dir, now: now}
	path := filepath.Join(dir, keyFile)
	key, err := os.ReadFile(path)
	damaged := err == nil && !isKey(key)
	if damaged {
		log.Info("replaced the damaged key of the image cache: registries are asked again whether clusters may pull", "file", path)
		err = os.Remove(path)
	}
	if damaged && err == nil || errors.Is(err, fs.ErrNotExist) {
		key, err = r.createKey(path)
	}
	if err == nil && !isKey(key) {
		err = fmt.Errorf("%s is damaged: stop hotspare and delete the file", path)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the image cache: %w", err)
	}
	r.key = key
	return r, nil
}

// isKey reports whether the content of a file can be a key. After a power failure, a file may be empty or contain zeros.
func isKey(content []byte) bool {
	return len(content) == sha256.Size && !bytes.Equal(content, make([]byte, sha256.Size))
}

// createKey creates the key, unless another process does, and returns it.
func (r *records) createKey(path string) ([]byte, error) {
	fresh := make([]byte, sha256.Size)
	_, _ = rand.Read(fresh) // it does not fail
	if err := r.writeNew(path, fresh); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// identity returns a name for credentials that says nothing about them without the key.
func (r *records) identity(c authn.AuthConfig) string {
	if c == (authn.AuthConfig{}) {
		return anonymous
	}
	mac := hmac.New(sha256.New, r.key)
	fmt.Fprintf(mac, "%q", []string{c.Username, c.Password, c.Auth, c.IdentityToken, c.RegistryToken})
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

func (r *records) repositoryPath(repository reference.Named, parts ...string) string {
	folder := filepath.Join(r.dir, repositoriesFolder, reference.Domain(repository), filepath.FromSlash(reference.Path(repository)))
	return filepath.Join(append([]string{folder}, parts...)...)
}

// writeTemporary writes a file that gets its final name later.
func (r *records) writeTemporary(raw []byte) (string, error) {
	dir := filepath.Join(r.dir, temporaryFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, "")
	if err != nil {
		return "", err
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// write replaces a record.
func (r *records) write(path string, raw []byte) error {
	temporary, err := r.writeTemporary(raw)
	if err != nil {
		return fmt.Errorf("writing a record of the image cache: %w", err)
	}
	err = os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return fmt.Errorf("writing a record of the image cache: %w", errors.Join(err, os.Remove(temporary)))
	}
	return nil
}

// writeNew writes a file unless it exists. The file survives a power failure.
func (r *records) writeNew(path string, raw []byte) error {
	temporary, err := r.writeTemporary(raw)
	if err != nil {
		return err
	}
	if err = syncPath(temporary); err == nil {
		err = os.Link(temporary, path)
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(temporary), syncPath(filepath.Dir(path)))
}

// syncPath writes a file, or the names in a folder, to the disk.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// lastAccess returns when a registry has last given an identity access to a repository; false if it
// has not, or too long ago.
func (r *records) lastAccess(repository reference.Named, identity string) (time.Time, bool) {
	raw, err := os.ReadFile(r.repositoryPath(repository, accessFolder, identity))
	if err != nil {
		return time.Time{}, false
	}
	when, err := time.Parse(time.RFC3339Nano, string(raw))
	age := r.now().Sub(when)
	return when, err == nil && age >= 0 && age < accessLife
}

func (r *records) recordAccess(repository reference.Named, identity string) error {
	return r.write(r.repositoryPath(repository, accessFolder, identity), []byte(r.now().Format(time.RFC3339Nano)))
}

func (r *records) forgetAccess(repository reference.Named, identity string) {
	_ = os.Remove(r.repositoryPath(repository, accessFolder, identity)) // there may be none
}

// tagRecord is what a tag was.
type tagRecord struct {
	MediaType types.MediaType `json:"mediaType"`
	Digest    v1.Hash         `json:"digest"`
	Size      int64           `json:"size"`
	Checked   time.Time       `json:"checked"`
}

func (r *records) tag(repository reference.Named, tag string) (tagRecord, bool) {
	raw, err := os.ReadFile(r.repositoryPath(repository, tagsFolder, tag))
	if err != nil {
		return tagRecord{}, false
	}
	return parseTag(raw)
}

func parseTag(raw []byte) (tagRecord, bool) {
	var t tagRecord
	if json.Unmarshal(raw, &t) != nil {
		return tagRecord{}, false
	}
	return t, isSafe(t.Digest)
}

// isSafe reports whether the hexadecimal form of a digest is safe as the name of a file.
func isSafe(digest v1.Hash) bool {
	_, err := hex.DecodeString(digest.Hex)
	return err == nil && digest.Algorithm == "sha256" && len(digest.Hex) == 2*sha256.Size
}

func (r *records) recordTag(repository reference.Named, tag string, t tagRecord) error {
	raw, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("writing a record of the image cache: %w", err)
	}
	return r.write(r.repositoryPath(repository, tagsFolder, tag), raw)
}

func (r *records) forgetTag(repository reference.Named, tag string) {
	_ = os.Remove(r.repositoryPath(repository, tagsFolder, tag)) // there may be none
}

// hasContent reports whether the registry has said that the repository has this content.
func (r *records) hasContent(repository reference.Named, digest v1.Hash) bool {
	_, err := os.Stat(r.repositoryPath(repository, contentsFolder, digest.Hex))
	return err == nil
}

func (r *records) recordContent(repository reference.Named, digest v1.Hash) error {
	if r.hasContent(repository, digest) {
		return nil
	}
	return r.write(r.repositoryPath(repository, contentsFolder, digest.Hex), nil)
}

func (r *records) originPath(registry string, digest v1.Hash) string {
	return filepath.Join(r.dir, registriesFolder, registry, digest.Hex)
}

// originSize returns the size of content that the registry has served to this computer; false if it
// has not served it.
func (r *records) originSize(registry string, digest v1.Hash) (int64, bool) {
	raw, err := os.ReadFile(r.originPath(registry, digest))
	if err != nil {
		return 0, false
	}
	size, err := strconv.ParseInt(string(raw), 10, 64)
	return size, err == nil
}

func (r *records) recordOrigin(registry string, digest v1.Hash, size int64) error {
	return r.write(r.originPath(registry, digest), []byte(strconv.FormatInt(size, 10)))
}

// sweep removes old records of content that was deleted, old accesses, and files that a process which
// was killed was writing. has reports whether there is content with a hexadecimal digest.
func (r *records) sweep(has func(hex string) bool) error {
	return r.walk(func(path, folder string, info fs.FileInfo) {
		age := r.now().Sub(info.ModTime())
		unused := false
		switch folder {
		case accessFolder:
			unused = age > accessLife
		case temporaryFolder:
			unused = age > time.Hour
		case contentsFolder, registriesFolder:
			unused = age > unusedLife && !has(info.Name())
		case tagsFolder:
			raw, err := os.ReadFile(path)
			t, ok := parseTag(raw)
			unused = age > unusedLife && err == nil && (!ok || !has(t.Digest.Hex))
		}
		if unused {
			_ = os.Remove(path) // it is tried again at the next start
		}
	})
}

// walk calls visit for each record, with the kind of folder that contains it.
func (r *records) walk(visit func(path, folder string, info fs.FileInfo)) error {
	for _, top := range []string{registriesFolder, repositoriesFolder, temporaryFolder} {
		err := filepath.WalkDir(filepath.Join(r.dir, top), func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // removed by another process, or never created
			}
			if err != nil || e.IsDir() {
				return err
			}
			folder := top
			if name := filepath.Base(filepath.Dir(path)); strings.HasPrefix(name, "_") {
				folder = name
			}
			if info, err := e.Info(); err == nil {
				visit(path, folder, info)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("reading the image cache: %w", err)
		}
	}
	return nil
}

// forgetAll removes all records. Those that other processes write at the same time may stay.
func (r *records) forgetAll() error {
	return r.walk(func(path, folder string, _ fs.FileInfo) {
		if folder != temporaryFolder {
			_ = os.Remove(path) // a record that stays is a hint about content that does not exist
		}
	})
}
