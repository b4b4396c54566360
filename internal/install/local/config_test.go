package local

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/fault"
)

const valid = "metadata: {name: c}\nbaseDomain: example.com\n"

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want config
	}{
		"nothing said about the platform": {valid, config{"c", "example.com", 1, 24 * time.Hour, 0, "Auto", nil}},
		"all said":                        {valid + "platform: {local: {workers: 3, certificateDuration: 90m, apiPort: 1024}}", config{"c", "example.com", 3, 90 * time.Minute, 1024, "Auto", nil}},
		"the highest port":                {valid + "platform: {local: {apiPort: 65535}}", config{"c", "example.com", 1, 24 * time.Hour, 65535, "Auto", nil}},
		"no workers":                      {valid + "platform: {local: {workers: 0}}", config{"c", "example.com", 0, 24 * time.Hour, 0, "Auto", nil}},
		"an empty section":                {valid + "platform: {local: {}}", config{"c", "example.com", 1, 24 * time.Hour, 0, "Auto", nil}},
		"a null section":                  {valid + "platform: {local: null}", config{"c", "example.com", 1, 24 * time.Hour, 0, "Auto", nil}},
		"an empty duration":               {valid + "platform: {local: {certificateDuration: ''}}", config{"c", "example.com", 1, 24 * time.Hour, 0, "Auto", nil}},
		"the section of another platform": {valid + "platform: {none: {}}", config{"c", "example.com", 1, 24 * time.Hour, 0, "Auto", nil}},
		"a platform of another shape":     {valid + "platform: none", config{"c", "example.com", 1, 24 * time.Hour, 0, "Auto", nil}},
		"containers":                      {valid + "platform: {local: {containers: Always}}", config{"c", "example.com", 1, 24 * time.Hour, 0, "Always", nil}},
		"images": {
			valid + "platform: {local: {images: ['busybox:1.36', r.example.com:5000/a/b]}}",
			config{"c", "example.com", 1, 24 * time.Hour, 0, "Auto", []string{"busybox:1.36", "r.example.com:5000/a/b"}},
		},
		"no containers":                    {valid + "platform: {local: {containers: Never}}", config{"c", "example.com", 1, 24 * time.Hour, 0, "Never", nil}},
		"sections that only OpenShift has": {valid + "compute: [{replicas: 3}]\nfips: true", config{"c", "example.com", 1, 24 * time.Hour, 0, "Auto", nil}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseInstallConfig([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(config{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseDenies(t *testing.T) {
	for name, c := range map[string]struct{ in, path, value, remedy string }{
		"no YAML":               {"a: b: c", "install-config.yaml", "mapping values", "mapping"},
		"no mapping":            {"[]", "install-config.yaml", "array", "mapping"},
		"no name":               {"baseDomain: example.com", "metadata.name", "", "set it"},
		"no domain":             {"metadata: {name: c}", "baseDomain", "", "such as example.com"},
		"a name with capitals":  {"metadata: {name: Cee}\nbaseDomain: a.b", "metadata.name", `"Cee"`, "lower case"},
		"a name of digits":      {"metadata: {name: 12}\nbaseDomain: a.b", "metadata.name", "12", "must be a string"},
		"a bad domain":          {"metadata: {name: c}\nbaseDomain: a_b", "baseDomain", `"a_b"`, "subdomain"},
		"a section of text":     {valid + "platform: {local: yes}", "platform.local", "true", "must be a mapping"},
		"an unknown field":      {valid + "platform: {local: {wrokers: 3}}", "platform.local.wrokers", "3", "known fields are apiPort, certificateDuration, containers, images and workers"},
		"too many workers":      {valid + "platform: {local: {workers: 21}}", "platform.local.workers", "21", "from 0 to 20"},
		"half a worker":         {valid + "platform: {local: {workers: 1.5}}", "platform.local.workers", "1.5", "from 0 to 20"},
		"workers in words":      {valid + "platform: {local: {workers: two}}", "platform.local.workers", `"two"`, "from 0 to 20"},
		"a duration in days":    {valid + "platform: {local: {certificateDuration: 1d}}", "platform.local.certificateDuration", `"1d"`, "such as 8h"},
		"too short a duration":  {valid + "platform: {local: {certificateDuration: 5s}}", "platform.local.certificateDuration", `"5s"`, "at least 1m"},
		"an unknown answer":     {valid + "platform: {local: {containers: true}}", "platform.local.containers", "true", `"Always", "Auto", "Never"`},
		"no list of images":     {valid + "platform: {local: {images: busybox}}", "platform.local.images", `"busybox"`, "must be a list"},
		"no name of an image":   {valid + "platform: {local: {images: [a, 'B:c']}}", "platform.local.images[1]", `"B:c"`, "such as busybox:1.36"},
		"a number of an image":  {valid + "platform: {local: {images: [7]}}", "platform.local.images[0]", "7", "such as busybox:1.36"},
		"containers, no worker": {valid + "platform: {local: {containers: Always, workers: 0}}", "platform.local.workers", "0", "at least 1"},
		"a port for root":       {valid + "platform: {local: {apiPort: 1023}}", "platform.local.apiPort", "1023", "from 1024 to 65535"},
		"a port too high":       {valid + "platform: {local: {apiPort: 65536}}", "platform.local.apiPort", "65536", "from 1024 to 65535"},
		"a port in quotes":      {valid + "platform: {local: {apiPort: '20000'}}", "platform.local.apiPort", `"20000"`, "from 1024 to 65535"},
		"a null port":           {valid + "platform: {local: {apiPort: null}}", "platform.local.apiPort", "null", "remove it"},
		"a bare number":         {valid + "platform: {local: {certificateDuration: 60}}", "platform.local.certificateDuration", "60", "must be a string"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseInstallConfig([]byte(c.in))
			if fault.KindOf(err) != fault.Denied {
				t.Fatalf("got %v", err)
			}
			for _, part := range []string{c.path, c.value, c.remedy} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
		})
	}
}
