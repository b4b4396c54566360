package pod

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/install/job/state"
)

func TestManifestsAreAdded(t *testing.T) {
	b := newBench(t)
	o := b.options()
	extra := t.TempDir()
	must(t, os.WriteFile(filepath.Join(extra, "99-mine.yaml"), []byte("kind: Mine"), 0o600))
	o.Manifests = []string{filepath.Join(extra, "none"), extra}
	must(t, PrepareInstall(t.Context(), o))
	packed, err := b.store().LoadFolder(t.Context(), b.state())
	must(t, err)
	dir := t.TempDir()
	must(t, state.UnpackFolder(packed, dir))
	ign, err := os.ReadFile(filepath.Join(dir, "bootstrap.ign"))
	must(t, err)
	if !strings.Contains(string(ign), "99-mine.yaml: kind: Mine") {
		t.Errorf("the manifest is missing in\n%s", ign)
	}
}

func TestMetadataHoldsNoAccount(t *testing.T) {
	b := newBench(t)
	b.prepare()
	md := b.state().Metadata
	if strings.Contains(string(md), "planted-password") {
		t.Fatalf("the password is in %s", md)
	}
	creds := t.TempDir()
	must(t, os.WriteFile(filepath.Join(creds, "username"), []byte("me\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(creds, "password"), []byte("secret"), 0o600))
	back, err := withCredentials(md, creds)
	must(t, err)
	var doc struct{ VSphere map[string]string }
	must(t, json.Unmarshal(back, &doc))
	want(t, map[string]string{"vCenter": "vc.example", "username": "me", "password": "secret"}, doc.VSphere)

	other := []byte(`{"infraID":"x","aws":{"region":"r","password":"is not an account"}}`)
	same, err := withoutCredentials(other)
	must(t, err)
	want(t, string(other), string(same))
}

func TestResolve(t *testing.T) {
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "image-references")
	must(t, os.WriteFile(file, []byte(`{"kind":"ImageStream","spec":{"tags":[{"name":"cli","from":{"name":"q/cli@sha256:1"}},{"name":"installer","from":{"name":"q/i@sha256:2"}}]}}`), 0o600))
	must(t, ResolveImages(t.Context(), b.options(), file))
	want(t, "q/i@sha256:2 q/cli@sha256:1", b.state().InstallerImage+" "+b.state().CLIImage)
	must(t, os.WriteFile(file, []byte(`{"spec":{"tags":[{"name":"cli","from":{"name":"x"}}]}}`), 0o600))
	if err := ResolveImages(t.Context(), b.options(), file); err == nil || !strings.Contains(err.Error(), `no tag "installer"`) {
		t.Errorf("got %v", err)
	}
}

func TestSecretsOfFiles(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"osServiceAccount.json": `{"private_key":"K1","client_email":"me@x","nested":[{"token":"K2"}]}`,
		"clouds.yaml":           "clouds: {o: {auth: {password: K3, username: joe}}}",
		"ibmcloud_api_key":      "K4\n",
		"username":              "joe",
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	found, err := collectSecrets([]string{"AWS_SECRET_ACCESS_KEY=K5", "PATH=/bin"}, dir)
	must(t, err)
	slices.Sort(found)
	want(t, "K1 K2 K3 K4 K5", strings.Join(found, " "))
}

func TestPackingAndUnpacking(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "auth"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "auth", "a"), []byte("A"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, logName), []byte("L"), 0o600))
	packed, err := state.PackFolder(dir, logName)
	must(t, err)
	to := t.TempDir()
	must(t, state.UnpackFolder(packed, to))
	raw, err := os.ReadFile(filepath.Join(to, "auth", "a"))
	must(t, err)
	want(t, "A", string(raw))
	if _, err := os.Stat(filepath.Join(to, logName)); err == nil {
		t.Error("the log was packed")
	}

	large := make([]byte, 2*state.PartSize+1)
	parts, digest, err := b.store().SaveFolder(t.Context(), large)
	must(t, err)
	want(t, 3, parts)
	back, err := b.store().LoadFolder(t.Context(), state.State{Parts: parts, Digest: digest})
	must(t, err)
	want(t, len(large), len(back))
	if _, _, err := b.store().SaveFolder(t.Context(), make([]byte, state.MaxParts*state.PartSize+1)); err == nil {
		t.Error("too much was stored")
	}
}

func TestAConfigurationFileOfAWSStandsForTheKeys(t *testing.T) {
	b := newBench(t)
	o := b.options()
	o.Credentials = t.TempDir()
	file := filepath.Join(o.Credentials, AWSConfig)
	must(t, os.WriteFile(file, []byte("[default]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = keys\n[keys]\naws_access_key_id = hush-1-hush\naws_secret_access_key=hush-2-hush\n"), 0o600))
	o.Env = []string{"AWS_ACCESS_KEY_ID=old", "AWS_SESSION_TOKEN=old", "KEPT=1"}
	p, err := newInstallerRun(o)
	must(t, err)
	got := slices.DeleteFunc(p.installerProcessEnv(), func(e string) bool { return !strings.HasPrefix(e, "AWS_") && e != "KEPT=1" })
	want(t, []string{"KEPT=1", "AWS_CONFIG_FILE=" + file, "AWS_SHARED_CREDENTIALS_FILE=" + file, "AWS_SDK_LOAD_CONFIG=1"}, got)
	_, err = p.log.Write([]byte("with hush-1-hush and hush-2-hush\n"))
	must(t, err)
	if told := b.out.text(); strings.Contains(told, "hush") {
		t.Errorf("it tells %s", told)
	}
}
