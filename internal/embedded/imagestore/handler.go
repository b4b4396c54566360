package imagestore

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// defaultRegistry is the registry of requests that name none.
const defaultRegistry = "docker.io"

// Handler serves the images as the pull part of the OCI distribution specification. The query
// parameter ns names the registry, as containerd sends it to mirrors.
func (s *Store) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.serve(w, r); err != nil {
			writeError(w, err)
		}
	})
}

// registryError is an error of the distribution specification.
type registryError struct {
	status  int
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *registryError) Error() string { return e.Message }

func notFound(code, message string) error {
	return &registryError{status: http.StatusNotFound, Code: code, Message: message}
}

func writeError(w http.ResponseWriter, err error) {
	var known *registryError
	if !errors.As(err, &known) {
		known = &registryError{status: http.StatusInternalServerError, Code: "UNKNOWN", Message: err.Error()}
	}
	raw, err := json.Marshal(map[string][]*registryError{"errors": {known}})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Del("Docker-Content-Digest")
	h.Set("Content-Type", "application/json")
	w.WriteHeader(known.status)
	_, _ = w.Write(raw) // the client has gone
}

func (s *Store) serve(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return &registryError{
			status: http.StatusMethodNotAllowed, Code: "UNSUPPORTED",
			Message: "this registry is read-only: load images with: hotspare image load",
		}
	}
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	if r.URL.Path == "/v2/" || r.URL.Path == "/v2" {
		w.Header().Set("Content-Type", "application/json")
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader("{}"))
		return nil
	}
	repository, kind, item, err := splitRequest(r.URL.Path)
	if err != nil {
		return err
	}
	registry := r.URL.Query().Get("ns")
	if registry == "" {
		registry = defaultRegistry
	}
	name, err := parseRepository(registry, repository)
	if err != nil {
		return notFound("NAME_INVALID", "the name of the repository is not valid: "+err.Error())
	}
	if kind == "blobs" {
		return s.serveBlob(w, r, item)
	}
	return s.serveManifest(w, r, name, item)
}

// splitRequest splits /v2/REPOSITORY/KIND/ITEM. A repository can contain the names of kinds.
func splitRequest(path string) (repository, kind, item string, err error) {
	rest, isAPI := strings.CutPrefix(path, "/v2/")
	parts := strings.Split(rest, "/")
	last := len(parts) - 1
	if !isAPI || last < 2 || parts[last-1] != "manifests" && parts[last-1] != "blobs" {
		return "", "", "", notFound("UNSUPPORTED", "this registry serves manifests and blobs only")
	}
	return strings.Join(parts[:last-1], "/"), parts[last-1], parts[last], nil
}

// serveBlob serves a blob of any image: its digest names its content, whatever the repository.
func (s *Store) serveBlob(w http.ResponseWriter, r *http.Request, item string) error {
	digest, err := v1.NewHash(item)
	if err == nil {
		err = validateDigest(digest)
	}
	if err != nil {
		return notFound("DIGEST_INVALID", "the digest of the blob is not valid: "+err.Error())
	}
	f, err := os.Open(s.path(blobName(digest)))
	if errors.Is(err, fs.ErrNotExist) {
		return notFound("BLOB_UNKNOWN", "no image contains blob "+digest.String())
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read only
	serveContent(w, r, "application/octet-stream", digest, f)
	return nil
}

func serveContent(w http.ResponseWriter, r *http.Request, mediaType string, digest v1.Hash, content io.ReadSeeker) {
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Docker-Content-Digest", digest.String())
	h.Set("Etag", `"`+digest.String()+`"`)
	http.ServeContent(w, r, "", time.Time{}, content)
}

// serveManifest serves the manifest or the index with a tag or with a digest.
func (s *Store) serveManifest(w http.ResponseWriter, r *http.Request, name reference.Named, item string) error {
	d, err := s.findManifest(name, item)
	if err != nil {
		return err
	}
	unknown := notFound("MANIFEST_UNKNOWN", "the store has no image "+name.Name()+" with the tag or digest "+item)
	raw, err := s.readBlob(d.Digest)
	if errors.Is(err, fs.ErrNotExist) {
		return unknown
	}
	if err != nil {
		return err
	}
	if d.MediaType == "" {
		d.MediaType = detectMediaType(raw)
	}
	if !d.MediaType.IsImage() && !d.MediaType.IsIndex() {
		return unknown
	}
	serveContent(w, r, string(d.MediaType), d.Digest, bytes.NewReader(raw))
	return nil
}

// findManifest returns the descriptor of a tag or of a digest; without a media type for a digest.
func (s *Store) findManifest(name reference.Named, item string) (tagReference, error) {
	if strings.Contains(item, ":") {
		digest, err := v1.NewHash(item)
		if err == nil {
			err = validateDigest(digest)
		}
		if err != nil {
			return tagReference{}, notFound("DIGEST_INVALID", "the digest of the manifest is not valid: "+err.Error())
		}
		return tagReference{Digest: digest}, nil
	}
	tagged, err := reference.WithTag(name, item)
	if err != nil {
		return tagReference{}, notFound("MANIFEST_UNKNOWN", "the tag is not valid: "+err.Error())
	}
	found, err := readReference(s.referencePath(tagged))
	if errors.Is(err, fs.ErrNotExist) {
		return found, notFound("MANIFEST_UNKNOWN", "the store has no image "+tagged.String()+": load it with: hotspare image load")
	}
	return found, err
}

// readBlob reads a blob that is small enough for a manifest. A larger one is none.
func (s *Store) readBlob(digest v1.Hash) ([]byte, error) {
	f, err := os.Open(s.path(blobName(digest)))
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err == nil && len(raw) > maxDocument {
		err = fs.ErrNotExist
	}
	return raw, errors.Join(err, f.Close())
}

// detectMediaType returns the media type of a manifest or of an index; "" for anything else.
func detectMediaType(raw []byte) types.MediaType {
	var m struct {
		SchemaVersion     int             `json:"schemaVersion"`
		MediaType         types.MediaType `json:"mediaType"`
		Config, Manifests json.RawMessage
	}
	switch err := json.Unmarshal(raw, &m); {
	case err != nil || m.SchemaVersion != 2:
		return ""
	case m.MediaType != "":
		return m.MediaType
	case m.Manifests != nil:
		return types.OCIImageIndex
	case m.Config != nil:
		return types.OCIManifestSchema1
	}
	return ""
}
