package baremetal

import (
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	of := func(scheme, host, path string) address {
		return address{protocol: redfish, scheme: scheme, host: host, path: path}
	}
	for text, want := range map[string]address{
		"redfish://10.0.0.5/redfish/v1/Systems/1":                                  of("https", "10.0.0.5:443", "/redfish/v1/Systems/1"),
		"redfish://10.0.0.5:8443/redfish/v1/Systems/1/":                            of("https", "10.0.0.5:8443", "/redfish/v1/Systems/1"),
		"redfish+http://bmc.example.com/redfish/v1/Systems/1":                      of("http", "bmc.example.com:80", "/redfish/v1/Systems/1"),
		"redfish+https://bmc.example.com/redfish/v1/Systems/1":                     of("https", "bmc.example.com:443", "/redfish/v1/Systems/1"),
		"redfish-virtualmedia://10.0.0.5/redfish/v1/Systems/1":                     of("https", "10.0.0.5:443", "/redfish/v1/Systems/1"),
		"redfish-virtualmedia+http://10.0.0.5:8000/redfish/v1/Systems/1":           of("http", "10.0.0.5:8000", "/redfish/v1/Systems/1"),
		"redfish-uefihttp://10.0.0.5/redfish/v1/Systems/1":                         of("https", "10.0.0.5:443", "/redfish/v1/Systems/1"),
		"idrac-redfish://10.0.0.5/redfish/v1/Systems/System.Embedded.1":            of("https", "10.0.0.5:443", "/redfish/v1/Systems/System.Embedded.1"),
		"idrac-virtualmedia+https://10.0.0.5/redfish/v1/Systems/System.Embedded.1": of("https", "10.0.0.5:443", "/redfish/v1/Systems/System.Embedded.1"),
		"ilo5-redfish://10.0.0.5/redfish/v1/Systems/1":                             of("https", "10.0.0.5:443", "/redfish/v1/Systems/1"),
		"ilo5-virtualmedia://10.0.0.5/redfish/v1/Systems/1":                        of("https", "10.0.0.5:443", "/redfish/v1/Systems/1"),
		"REDFISH://10.0.0.5/redfish/v1/Systems/1":                                  of("https", "10.0.0.5:443", "/redfish/v1/Systems/1"),

		"redfish://10.0.0.5/":                          of("https", "10.0.0.5:443", ""),
		"redfish://10.0.0.5/redfish/v1/":               of("https", "10.0.0.5:443", ""),
		"redfish://10.0.0.5/redfish/v1/Systems":        of("https", "10.0.0.5:443", ""),
		"redfish://[2001:db8::5]/redfish/v1/Systems/1": of("https", "[2001:db8::5]:443", "/redfish/v1/Systems/1"),
		"redfish://10.0.0.5/redfish/v1/Systems/a%2Fb":  of("https", "10.0.0.5:443", "/redfish/v1/Systems/a%2Fb"),

		"ipmi://10.0.0.5":                              {protocol: ipmi, host: "10.0.0.5:623"},
		"ipmi://10.0.0.5:6230":                         {protocol: ipmi, host: "10.0.0.5:6230"},
		"ipmi://[2001:db8::5]:6230":                    {protocol: ipmi, host: "[2001:db8::5]:6230"},
		"ipmi://10.0.0.5?privilegelevel=administrator": {protocol: ipmi, host: "10.0.0.5:623", level: "ADMINISTRATOR"},
		"libvirt://10.0.0.5:6230":                      {protocol: ipmi, host: "10.0.0.5:6230"},
		"10.0.0.5":                                     {protocol: ipmi, host: "10.0.0.5:623"},
		"bmc.example.com:6230":                         {protocol: ipmi, host: "bmc.example.com:6230"},
	} {
		got, err := parseAddress(" " + text + "\n")
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestParseAddressRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "is not like",
		"redfish://":                         "is not like",
		"redfish://10.0.0.5:99999/":          "is not like",
		"redfish://10.0.0.5:0/":              "is not like",
		"ipmi://10.0.0.5:none":               "is not like",
		"redfish://10.0.0.5/Systems/1":       "is not the path of a system",
		"redfish://10.0.0.5/redfish/v2":      "is not the path of a system",
		"redfish+ftp://10.0.0.5/":            "is not one of redfish,",
		"ipmi+http://10.0.0.5/":              "is not one of redfish,",
		"https://10.0.0.5/":                  "is not one of redfish,",
		"idrac://10.0.0.5/":                  "a vendor's protocol",
		"ilo4-virtualmedia://10.0.0.5":       "a vendor's protocol",
		"irmc://10.0.0.5":                    "a vendor's protocol",
		"ipmi://10.0.0.5?privilegelevel=":    "",
		"ipmi://10.0.0.5?privilegelevel=GOD": "is not one of CALLBACK",
		"redfish://root:calvin99@10.0.0.5/redfish/v1/Systems/1": "move them to bmc.username",
		"root:calvin99@10.0.0.5":                                "move them to bmc.username",
		"redfish://root:cal%zzvin99@10.0.0.5/redfish/v1":        "is not like",
		"redfish://root:calvin99@10.0.0.5:none/redfish/v1":      "is not like",
		"redfish://10.0.0.5\x7f/root:calvin99":                  "is not like",
	} {
		_, err := parseAddress(text)
		switch {
		case want == "":
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%s: got %v, want %q", text, err, want)
		case strings.Contains(err.Error(), "vin99") || strings.Contains(err.Error(), "root"):
			t.Errorf("%s: the error quotes it: %v", text, err)
		}
	}
}
