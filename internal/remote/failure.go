package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"hotspare.io/hotspare/internal/cabundle"
)

// isTimeout reports whether the call timed out: a second attempt would time out, too.
func isTimeout(err error) bool {
	var timedOut net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timedOut) && timedOut.Timeout()
}

// describeNoAnswer says in a few fixed words why a cluster did not answer.
func describeNoAnswer(err error) string {
	var (
		dns  *net.DNSError
		cert *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &cert):
		return describeUntrusted(err)
	case errors.As(err, &dns):
		return "its name does not resolve"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET):
		return "connection reset"
	case isTimeout(err):
		return "no answer within " + callTimeout.String()
	case apierrors.IsUnauthorized(err):
		return "it does not accept the admin kubeconfig"
	case apierrors.IsForbidden(err):
		return "the admin kubeconfig may not list nodes"
	case apierrors.ReasonForError(err) != "":
		return "it is not ready to serve"
	default:
		return "the connection failed"
	}
}

// describeUntrusted says that a certificate cannot be verified, and, if certificate authorities
// that might verify it are missing, why.
func describeUntrusted(err error) string {
	const plain = "its certificate does not verify"
	if problem := cabundle.BundleProblem(err); problem != "" {
		return plain + ": " + problem
	}
	return plain
}
