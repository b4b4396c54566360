// Package registryapi serves container images by the pull part of the OCI distribution specification.
//
// It parses requests and writes responses and errors. The content comes from sources: the images that
// were loaded into this computer, and those of other registries.
package registryapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// DefaultRegistry is the registry of requests that name none.
const DefaultRegistry = "docker.io"

// Request asks for a manifest or a blob.
type Request struct {
	// Repository is the full name of the repository, with its registry. Every part of it is safe as the
	// name of a folder.
	Repository reference.Named
	// Tag is the tag of a manifest; empty if Digest is set.
	Tag string
	// Digest is a valid SHA-256 digest, unless Tag is set.
	Digest v1.Hash
	// HeadOnly is true if the client asks whether the content exists: the content's Body may be nil.
	HeadOnly bool
	// Credentials are those of the client; empty if it sent none. containerd sends those that the
	// imagePullSecrets of a pod have for the registry of the image, after a response with status 401.
	Credentials authn.AuthConfig
}

// Reference returns the tag or the digest.
func (r Request) Reference() string {
	if r.Tag != "" {
		return r.Tag
	}
	return r.Digest.String()
}

// Content is a manifest or a blob.
type Content struct {
	// MediaType is the type of a manifest; blobs have none.
	MediaType types.MediaType
	Digest    v1.Hash
	// Size is the number of bytes; -1 if it is not known.
	Size int64
	// Age is how long ago the content was the right one for sure; 0 means now.
	Age time.Duration
	// Body is the content. If it is also an io.Seeker, parts of it are served. The handler closes it.
	Body io.ReadCloser
}

// Source has manifests and blobs. An error that is an *Error is written as it is. The next source is
// asked if its status is 404.
type Source interface {
	OpenManifest(ctx context.Context, r Request) (*Content, error)
	OpenBlob(ctx context.Context, r Request) (*Content, error)
}

// Error is an error of the distribution specification.
type Error struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
	// RetryAfter is when the client should ask again; 0 if that is not known.
	RetryAfter time.Duration `json:"-"`
}

func (e *Error) Error() string { return e.Message }

// NotFound returns an error with status 404.
func NotFound(code, message string) error {
	return &Error{Status: http.StatusNotFound, Code: code, Message: message}
}

// PullReserve is how many bytes of the disk a pull leaves free: the hub and the clusters have their data on
// the disk to which nodes pull, and end when it is full.
const PullReserve = 256 << 20

// ConfirmSpace returns an *Error unless a node can store a blob of a size on a disk with that many bytes free.
// A size of -1 is not known.
func ConfirmSpace(digest v1.Hash, size, free int64) error {
	if free-PullReserve >= max(size, 0) {
		return nil
	}
	return &Error{
		Status: http.StatusInsufficientStorage, Code: "NO_SPACE",
		Message: fmt.Sprintf("the disk of the data folder has only %d bytes free, of which %d are kept for the clusters: free space for blob %s of %d bytes",
			max(free, 0), int64(PullReserve), digest, size),
	}
}

// IsNotFound reports whether err is an *Error with status 404.
func IsNotFound(err error) bool {
	var known *Error
	return errors.As(err, &known) && known.Status == http.StatusNotFound
}

// Handler serves the first source that has the content. The query parameter ns names the registry, as
// containerd sends it to mirrors.
func Handler(sources ...Source) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := serve(w, r, sources); err != nil {
			writeError(w, err)
		}
	})
}

func writeError(w http.ResponseWriter, err error) {
	var known *Error
	if !errors.As(err, &known) {
		known = &Error{Status: http.StatusInternalServerError, Code: "UNKNOWN", Message: err.Error()}
	}
	raw, err := json.Marshal(map[string][]*Error{"errors": {known}})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if known.Status == http.StatusUnauthorized {
		h.Set("Www-Authenticate", `Basic realm="images"`)
	}
	if known.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(known.RetryAfter.Seconds()))))
	}
	w.WriteHeader(known.Status)
	_, _ = w.Write(raw) // the client has gone
}

func serve(w http.ResponseWriter, r *http.Request, sources []Source) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return &Error{
			Status: http.StatusMethodNotAllowed, Code: "UNSUPPORTED",
			Message: "this registry is read-only: load images with: hotspare image load",
		}
	}
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	if r.URL.Path == "/v2/" || r.URL.Path == "/v2" {
		w.Header().Set("Content-Type", "application/json")
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader("{}"))
		return nil
	}
	request, isBlob, err := parseRequest(r)
	if err != nil {
		return err
	}
	content, err := open(r.Context(), sources, request, isBlob)
	if err != nil {
		return err
	}
	writeContent(w, r, content)
	return nil
}

// open returns the content of the first source that has it, or the last source's error.
func open(ctx context.Context, sources []Source, r Request, isBlob bool) (content *Content, err error) {
	for _, s := range sources {
		if isBlob {
			content, err = s.OpenBlob(ctx, r)
		} else {
			content, err = s.OpenManifest(ctx, r)
		}
		if !IsNotFound(err) {
			return content, err
		}
	}
	return content, err
}

// writeContent writes the content. It aborts the connection if the content ends too early, so that the
// client does not take the part for the whole.
func writeContent(w http.ResponseWriter, r *http.Request, c *Content) {
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	if c.MediaType != "" {
		h.Set("Content-Type", string(c.MediaType))
	}
	h.Set("Docker-Content-Digest", c.Digest.String())
	h.Set("Etag", `"`+c.Digest.String()+`"`)
	if c.Age > 0 {
		h.Set("Age", strconv.Itoa(int(c.Age.Seconds())))
	}
	if c.Body != nil {
		defer func() { _ = c.Body.Close() }() // it was only read
	}
	if seeker, ok := c.Body.(io.ReadSeeker); ok {
		http.ServeContent(w, r, "", time.Time{}, seeker)
		return
	}
	if c.Size >= 0 {
		h.Set("Content-Length", strconv.FormatInt(c.Size, 10))
	}
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead || c.Body == nil {
		return
	}
	if _, err := io.Copy(w, c.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// parseRequest parses a request for a manifest or a blob.
func parseRequest(r *http.Request) (request Request, isBlob bool, err error) {
	repository, kind, item, err := splitPath(r.URL.Path)
	if err != nil {
		return Request{}, false, err
	}
	registry := r.URL.Query().Get("ns")
	if registry == "" {
		registry = DefaultRegistry
	}
	request.HeadOnly = r.Method == http.MethodHead
	if user, password, has := r.BasicAuth(); has {
		request.Credentials = authn.AuthConfig{ // as in a pull secret
			Username: user, Password: password, Auth: base64.StdEncoding.EncodeToString([]byte(user + ":" + password)),
		}
	}
	if request.Repository, err = parseRepository(registry, repository); err != nil {
		return Request{}, false, NotFound("NAME_INVALID", "the name of the repository is not valid: "+err.Error())
	}
	if kind == "manifests" && !strings.Contains(item, ":") {
		if _, err := reference.WithTag(request.Repository, item); err != nil {
			return Request{}, false, NotFound("MANIFEST_UNKNOWN", "the tag is not valid: "+err.Error())
		}
		request.Tag = item
		return request, false, nil
	}
	request.Digest, err = v1.NewHash(item)
	if err == nil {
		err = ValidateDigest(request.Digest)
	}
	if err != nil {
		return Request{}, false, NotFound("DIGEST_INVALID", "the digest is not valid: "+err.Error())
	}
	return request, kind == "blobs", nil
}

// splitPath splits /v2/REPOSITORY/KIND/ITEM. A repository can contain the names of kinds.
func splitPath(path string) (repository, kind, item string, err error) {
	rest, isAPI := strings.CutPrefix(path, "/v2/")
	parts := strings.Split(rest, "/")
	last := len(parts) - 1
	if !isAPI || last < 2 || parts[last-1] != "manifests" && parts[last-1] != "blobs" {
		return "", "", "", NotFound("UNSUPPORTED", "this registry serves manifests and blobs only")
	}
	return strings.Join(parts[:last-1], "/"), parts[last-1], parts[last], nil
}

// parseRepository parses the registry and the repository of a request. Every part of them is then
// safe as the name of a folder.
func parseRepository(registry, repository string) (reference.Named, error) {
	if registry == "index.docker.io" || registry == "registry-1.docker.io" {
		registry = DefaultRegistry
	}
	named, err := reference.ParseNormalizedNamed(registry + "/" + repository)
	if err != nil {
		return nil, err
	}
	if !reference.IsNameOnly(named) || reference.Domain(named) != registry {
		return nil, fmt.Errorf("%q is no registry with a repository", registry+"/"+repository)
	}
	return named, nil
}

// ValidateDigest returns an error unless the digest is a SHA-256 digest, whose hexadecimal form is safe
// as the name of a file.
func ValidateDigest(digest v1.Hash) error {
	if digest.Algorithm != "sha256" || len(digest.Hex) != 64 {
		return fmt.Errorf("%q is no SHA-256 digest", digest.String())
	}
	return nil
}
