package bucket

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseLocation(t *testing.T) {
	for text, want := range map[string]Location{
		"s3://bundles":                              {Bucket: "bundles"},
		"s3://bundles/":                             {Bucket: "bundles"},
		"s3://my.bundles/a/b/?region=eu-west-1":     {Bucket: "my.bundles", Prefix: "a/b/", Region: "eu-west-1"},
		"s3://bundles/a?endpoint=http://[::1]:9000": {Bucket: "bundles", Prefix: "a/", Endpoint: "http://[::1]:9000"},
		"s3://bundles?endpoint=https://minio.example.com:9000/&region=x": {Bucket: "bundles", Region: "x", Endpoint: "https://minio.example.com:9000"},
	} {
		got, err := ParseLocation(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
}

func TestBadLocationsAreExplained(t *testing.T) {
	for text, want := range map[string]string{
		"":                                         "specify one such as s3://",
		"https://bundles":                          "specify one such as s3://",
		"s3:bundles":                               "specify one such as s3://",
		"s3://bundles#a":                           "specify one such as s3://",
		"s3://":                                    "is no name of a bucket",
		"s3://Bundles":                             "is no name of a bucket",
		"s3://bundles:80":                          "is no name of a bucket",
		"s3://key:hunter2@bundles":                 "contains credentials: remove them",
		"s3://bundles/a//b":                        "the prefix",
		"s3://bundles/../b":                        "the prefix",
		"s3://bundles/a b":                         "the prefix",
		"s3://bundles?region=EU West":              "the region",
		"s3://bundles?region=a&region=b":           "more than once",
		"s3://bundles?reg=a":                       `parameter "reg" is unknown`,
		"s3://bundles?a=%zz":                       "are no query",
		"s3://bundles?endpoint=minio":              "the endpoint",
		"s3://bundles?endpoint=ftp://minio":        "the endpoint",
		"s3://bundles?endpoint=http://m/a":         "the endpoint",
		"s3://bundles?endpoint=http://a:hunter2@m": "the endpoint",
	} {
		_, err := ParseLocation(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
