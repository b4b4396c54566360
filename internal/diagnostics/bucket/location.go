package bucket

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Scheme is the beginning of the URL of a bucket.
const Scheme = "s3://"

// Location is where bundles are stored.
type Location struct {
	Bucket string
	// Prefix is the beginning of the keys of all bundles; it ends in a slash unless it is empty.
	Prefix string
	// Region is that of the bucket; empty means that of the environment.
	Region string
	// Endpoint is the URL of a service other than Amazon S3; empty means Amazon S3.
	Endpoint string
}

// The forms of names of buckets, prefixes and regions. They have no character that must be escaped in a URL.
var (
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	prefixName = regexp.MustCompile(`^([A-Za-z0-9!_*'()-][A-Za-z0-9!_.*'()-]*/)*$`)
	regionName = regexp.MustCompile(`^[a-z0-9-]*$`)
)

// ParseLocation parses a URL such as s3://bucket/prefix?region=eu-west-1. Errors do not quote it: somebody may have
// written a password into it.
func ParseLocation(text string) (Location, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "s3" || u.Opaque != "" || u.Fragment != "" {
		return Location{}, errors.New("it is no URL of a bucket: specify one such as s3://bucket/prefix?region=eu-west-1")
	}
	if u.User != nil {
		return Location{}, errors.New("it contains credentials: remove them, and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment, or use a role")
	}
	l := Location{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	if l.Prefix != "" {
		l.Prefix += "/"
	}
	if err := l.readQuery(u.RawQuery); err != nil {
		return Location{}, err
	}
	return l, l.validate()
}

// readQuery reads the parameters of the URL.
func (l *Location) readQuery(raw string) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return errors.New("its parameters are no query of a URL: specify them such as ?region=eu-west-1&endpoint=https://minio.example.com")
	}
	for name, values := range query {
		if len(values) != 1 {
			return fmt.Errorf("its parameter %.40q is given more than once: give it once", name)
		}
		switch name {
		case "region":
			l.Region = values[0]
		case "endpoint":
			l.Endpoint = strings.TrimSuffix(values[0], "/")
		default:
			return fmt.Errorf("its parameter %.40q is unknown: the parameters are region and endpoint", name)
		}
	}
	return nil
}

// validate returns what is wrong with the location.
func (l *Location) validate() error {
	switch {
	case !bucketName.MatchString(l.Bucket):
		return fmt.Errorf("%.80q is no name of a bucket: it has 3 to 63 lower-case letters, digits, dots and dashes", l.Bucket)
	case !prefixName.MatchString(l.Prefix):
		return errors.New("the prefix contains an empty element, one that begins with a dot, or a character other than letters, digits and -_.!*'(): choose another")
	case !regionName.MatchString(l.Region):
		return errors.New("the region is no name of a region: specify one such as eu-west-1")
	case l.Endpoint == "":
		return nil
	}
	u, err := url.Parse(l.Endpoint)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "" {
		return errors.New("the endpoint is no address of a service: specify one without path and credentials, such as https://minio.example.com:9000")
	}
	return nil
}

// String returns the location as a condition names it.
func (l *Location) String() string {
	text := "bucket " + l.Bucket
	if l.Endpoint != "" {
		text += " at " + l.Endpoint
	}
	return text
}
