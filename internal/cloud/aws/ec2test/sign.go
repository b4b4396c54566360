package ec2test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// maxClockSkew is the maximum difference between the clocks of client and server.
const maxClockSkew = 5 * time.Minute

// scope is the scope of a signature, and the key that signed it.
type scope struct {
	id, region, service string
	headers             []string
}

// parseScope parses the header Authorization: "AWS4-HMAC-SHA256
// Credential=ID/20260102/us-east-1/ec2/aws4_request, SignedHeaders=a;b, Signature=…".
func parseScope(r *http.Request) (scope, bool) {
	fields, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	if !ok {
		return scope{}, false
	}
	part := map[string]string{}
	for _, f := range strings.Split(fields, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(f), "=")
		part[name] = value
	}
	c := strings.Split(part["Credential"], "/")
	if len(c) != 5 || c[4] != "aws4_request" {
		return scope{}, false
	}
	return scope{id: c[0], region: c[2], service: c[3], headers: strings.Split(part["SignedHeaders"], ";")}, true
}

func requestService(r *http.Request) string {
	sc, _ := parseScope(r)
	return sc.service
}

// verifySignature recomputes the signature from the headers that the client declares as signed, and
// compares it. The caller must hold s.mu.
func (s *Server) verifySignature(r *http.Request, body []byte) *Error {
	sc, ok := parseScope(r)
	if !ok {
		return newAPIError(http.StatusBadRequest, "MissingAuthenticationToken", "Request is missing Authentication Token")
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || time.Since(at).Abs() > maxClockSkew {
		return newAPIError(http.StatusBadRequest, "RequestExpired", "Request has expired.")
	}
	k, ok := s.keys[sc.id]
	if !ok || k.SessionToken != r.Header.Get("X-Amz-Security-Token") {
		return unknownKeyError(sc.service)
	}
	want, err := s.computeAuthorization(r, body, sc, at)
	if err != nil || !hmac.Equal([]byte(want), []byte(r.Header.Get("Authorization"))) {
		return unknownKeyError(sc.service)
	}
	switch {
	case k.expired && sc.service == "sts":
		return newAPIError(http.StatusForbidden, "ExpiredToken", "The security token included in the request is expired")
	case k.expired:
		return newAPIError(http.StatusBadRequest, "RequestExpired", "Request has expired.")
	}
	return nil
}

// unknownKeyError returns the service's error for an unknown key or a wrong signature.
func unknownKeyError(service string) *Error {
	if service == "sts" {
		return newAPIError(http.StatusForbidden, "InvalidClientTokenId", "The security token included in the request is invalid.")
	}
	return newAPIError(http.StatusUnauthorized, "AuthFailure", "AWS was not able to validate the provided access credentials")
}

// computeAuthorization returns the expected Authorization header. The signer signs all headers of a
// request, so the request it gets contains only the signed ones.
func (s *Server) computeAuthorization(r *http.Request, body []byte, sc scope, at time.Time) (string, error) {
	again, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+r.Host+r.URL.RequestURI(), http.NoBody)
	if err != nil {
		return "", err
	}
	for _, name := range sc.headers {
		switch name {
		case "host":
		case "content-length":
			if again.ContentLength, err = strconv.ParseInt(r.Header.Get("Content-Length"), 10, 64); err != nil {
				again.ContentLength = int64(len(body))
			}
		default:
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	sum := sha256.Sum256(body)
	err = v4.NewSigner().SignHTTP(r.Context(), s.keys[sc.id].Credentials, again, hex.EncodeToString(sum[:]), sc.service, sc.region, at)
	return again.Header.Get("Authorization"), err
}
