// Package bucket stores bundles of diagnostics in a bucket of Amazon S3, or of a service with the same API.
//
// A bundle is one object, which appears when its upload is complete, so that nothing is left of half an upload. The
// package needs the rights to list the bucket, and to write and delete objects; it never reads one. Credentials are
// those of the environment, as for all programs that use the AWS SDK.
package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"hotspare.io/hotspare/internal/diagnostics"
	"hotspare.io/hotspare/internal/diagnostics/retention"
)

// Limits of one operation. Each is within the time that a bundle may take at the release of a claim.
const (
	dialLimit   = 5 * time.Second
	listLimit   = 20 * time.Second
	uploadLimit = 45 * time.Second
	pruneLimit  = time.Minute
)

// maxPages bounds how much of the bucket Prune reads, 1000 objects a page.
const maxPages = 100

// defaultRegion signs requests to services other than Amazon S3, which have no regions.
const defaultRegion = "us-east-1"

// Bucket stores bundles in a bucket, with limits. Use one prefix for each hub: Prune deletes all bundles below it.
type Bucket struct {
	location Location
	limits   retention.Limits
	client   *s3.Client
	// credentials are looked up before each operation, so that their lack has a message of its own.
	credentials aws.CredentialsProvider
	times       times
}

// times are the limits of operations; tests have shorter ones.
type times struct{ list, upload, prune time.Duration }

// Open returns the bucket at a location. It connects to nothing. It returns an error if the environment configures
// the AWS SDK in a way that cannot be used, or the region is not known.
func Open(ctx context.Context, l Location, limits retention.Limits) (*Bucket, error) {
	transport := awshttp.NewBuildableClient().WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialLimit })
	options := []func(*config.LoadOptions) error{config.WithHTTPClient(transport)}
	if l.Region != "" {
		options = append(options, config.WithRegion(l.Region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of the AWS SDK: %w: correct the variables AWS_… of the environment, or the files that they name", err)
	}
	if cfg.Region == "" {
		if l.Endpoint == "" {
			return nil, errors.New("the region of the bucket is not known: add ?region=… to its URL, or set AWS_REGION in the environment")
		}
		cfg.Region = defaultRegion
	}
	return &Bucket{
		location: l, limits: limits, client: newClient(cfg, l), credentials: cfg.Credentials,
		times: times{list: listLimit, upload: uploadLimit, prune: pruneLimit},
	}, nil
}

// newClient returns a client of the service. The payload of an upload is signed, so that the service refuses one that
// is not complete; checksums of other kinds are not known to all services.
func newClient(cfg aws.Config, l Location) *s3.Client {
	return s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		if l.Endpoint != "" {
			o.BaseEndpoint = aws.String(l.Endpoint)
			o.UsePathStyle = true // services at one address have no host name for each bucket
		}
	})
}

// key returns the key of a bundle.
func (b *Bucket) key(name string) string { return b.location.Prefix + name }

// Has reports whether a bundle is stored. It lists the bucket: without the right to read objects, S3 does not say
// whether an object exists.
func (b *Bucket) Has(ctx context.Context, name string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, b.times.list)
	defer cancel()
	if err := b.checkCredentials(ctx); err != nil {
		return false, err
	}
	key := b.key(name)
	out, err := b.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: aws.String(b.location.Bucket), Prefix: aws.String(key), MaxKeys: aws.Int32(1)})
	if err != nil {
		return false, b.explain(listing, err)
	}
	for _, o := range out.Contents {
		if aws.ToString(o.Key) == key {
			return true, nil
		}
	}
	return false, nil
}

// Write stores a bundle.
func (b *Bucket) Write(ctx context.Context, name string, bundle *diagnostics.Bundle) error {
	if !retention.IsBundleName(name) {
		return fmt.Errorf("%q is no name of a bundle", name)
	}
	var content bytes.Buffer
	if _, err := bundle.WriteTo(&content); err != nil {
		return fmt.Errorf("packing a bundle: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, b.times.upload)
	defer cancel()
	if err := b.checkCredentials(ctx); err != nil {
		return err
	}
	_, err := b.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String(b.location.Bucket), Key: aws.String(b.key(name)),
		Body: bytes.NewReader(content.Bytes()), ContentLength: aws.Int64(int64(content.Len())), ContentType: aws.String("application/gzip"),
	})
	if err != nil {
		return b.explain(writing, err)
	}
	return nil
}

// List returns the stored bundles. It ignores objects that are none, and those below further prefixes.
func (b *Bucket) List(ctx context.Context) ([]retention.Bundle, error) {
	pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{
		Bucket: aws.String(b.location.Bucket), Prefix: aws.String(b.location.Prefix), Delimiter: aws.String("/"),
	})
	var out []retention.Bundle
	for page := 0; pages.HasMorePages() && page < maxPages; page++ {
		list, err := pages.NextPage(ctx)
		if err != nil {
			return nil, b.explain(listing, err)
		}
		for _, o := range list.Contents {
			name := path.Base(aws.ToString(o.Key))
			if b.key(name) == aws.ToString(o.Key) && retention.IsBundleName(name) && o.LastModified != nil {
				out = append(out, retention.NewBundle(name, *o.LastModified, aws.ToInt64(o.Size)))
			}
		}
	}
	return out, nil
}

// Prune deletes the bundles that exceed the limits. It deletes no other object.
func (b *Bucket) Prune(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, b.times.prune)
	defer cancel()
	if err := b.checkCredentials(ctx); err != nil {
		return err
	}
	bundles, err := b.List(ctx)
	if err != nil {
		return err
	}
	for _, old := range retention.Decide(retention.Snapshot{Now: now, Bundles: bundles, Limits: b.limits}).Delete {
		_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(b.location.Bucket), Key: aws.String(b.key(old.Name))})
		if err != nil && codeOf(err) != "NoSuchKey" {
			return b.explain(deleting, err) // the others would fail, too
		}
	}
	return nil
}

// checkCredentials returns an error if the environment has no credentials.
func (b *Bucket) checkCredentials(ctx context.Context) error {
	if b.credentials == nil {
		return noCredentials(nil)
	}
	if _, err := b.credentials.Retrieve(ctx); err != nil {
		return noCredentials(err)
	}
	return nil
}

func noCredentials(err error) error {
	return &diagnostics.StoreError{
		Message: "hotspare has no credentials for the bucket, or cannot renew them: " +
			"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in its environment, or give its service account a role",
		Err: err,
	}
}

// isRedirect reports whether the service answered with the address of another region.
func isRedirect(err error) bool {
	var response *awshttp.ResponseError
	return errors.As(err, &response) && (response.HTTPStatusCode() == http.StatusMovedPermanently || response.HTTPStatusCode() == http.StatusTemporaryRedirect)
}
