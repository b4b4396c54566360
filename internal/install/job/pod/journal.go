package pod

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/install/config"
	"hotspare.io/hotspare/internal/redact"
)

const (
	// excerptLines is the number of last lines in the excerpt, maxLine the maximum length of each.
	excerptLines = 50
	maxLine      = 2000
)

// journal receives the installer's log line by line, scrubs it, copies it to the pod's own output
// and keeps its end. It is the only way in which the log leaves the pod.
type journal struct {
	mu      sync.Mutex
	out     io.Writer
	secrets []string
	config  []byte
	pending []byte
	lines   []string
	// inKey is true while a private key is being printed.
	inKey bool
	// initializing is closed when the installer has logged that it waits for the cluster.
	initializing chan struct{}
	// why is the failure reason found in the log, if any.
	why   string
	finds map[*regexp.Regexp]string
}

func newJournal(out io.Writer, secrets []string) *journal {
	return &journal{out: out, secrets: secrets, finds: map[*regexp.Regexp]string{}, initializing: make(chan struct{})}
}

// setInstallConfig sets the install-config whose secrets are removed from the log.
func (j *journal) setInstallConfig(installConfig []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.config = installConfig
}

func (j *journal) addKnownSecret(s string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.secrets = append(j.secrets, strings.TrimSpace(s))
}

// Write accepts a part of the log.
func (j *journal) Write(part []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pending = append(j.pending, part...)
	for {
		end := bytes.IndexByte(j.pending, '\n')
		if end < 0 {
			return len(part), nil
		}
		line := string(j.pending[:end])
		j.pending = j.pending[end+1:]
		j.appendLine(line)
	}
}

// flushPending adds the last line if it has no line break.
func (j *journal) flushPending() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.pending) > 0 {
		j.appendLine(string(j.pending))
	}
	j.pending = nil
}

// appendLine adds one line. The caller holds j.mu.
func (j *journal) appendLine(line string) {
	line, show := j.omitPrivateKey(line)
	if !show {
		return
	}
	line = j.redactLine(line)
	j.recordLineFindings(line)
	if len(line) > maxLine {
		line = strings.ToValidUTF8(line[:maxLine], "") + "…"
	}
	_, _ = io.WriteString(j.out, line+"\n") // only the state must be complete
	j.lines = append(j.lines, line)
	if len(j.lines) > excerptLines {
		j.lines = j.lines[1:]
	}
}

func (j *journal) redactLine(line string) string {
	if len(j.config) > 0 {
		line = config.Redact(line, j.config)
	}
	return redact.Text(line, j.secrets...)
}

// omitPrivateKey drops the lines of a private key. Package scrub cannot do that here, because it
// sees one line at a time.
func (j *journal) omitPrivateKey(line string) (string, bool) {
	begins := strings.Contains(line, "PRIVATE KEY-----") && strings.Contains(line, "-----BEGIN")
	ends := strings.Contains(line, "PRIVATE KEY-----") && strings.Contains(line, "-----END")
	switch {
	case begins && !ends:
		j.inKey = true
		return redact.Redacted, true
	case j.inKey:
		j.inKey = !ends
		return "", false
	}
	return line, true
}

// initializingPattern matches the message that the installer logs when the bootstrap machine is
// deleted and the cluster comes up on its own.
var initializingPattern = regexp.MustCompile(`Waiting up to .* for the cluster at \S+ to initialize`)

// failureCauses maps patterns of the log to reasons; the last match counts. The names are Hive's
// where it has one.
var failureCauses = []struct {
	said   *regexp.Regexp
	reason string
}{
	{regexp.MustCompile(`(?i)quota|limit ?exceeded`), "QuotaExceeded"},
	{regexp.MustCompile(`AuthFailure|InvalidClientTokenId|SignatureDoesNotMatch|ExpiredToken|invalid_client|invalid_grant`), hivev1.ReasonInvalidCredentials},
	{regexp.MustCompile(`(?i)InsufficientInstanceCapacity|ZONE_RESOURCE_POOL_EXHAUSTED|SkuNotAvailable`), "InsufficientCapacity"},
	{regexp.MustCompile(`(?i)failed waiting for Kubernetes API`), "KubeAPIWaitTimeout"},
	{regexp.MustCompile(`(?i)bootstrap failed to complete|failed to wait for bootstrapping`), "BootstrapFailed"},
	{regexp.MustCompile(`(?i)failed to initialize the cluster`), "ClusterInitializationFailed"},
}

// errorLinePattern matches lines that contain the cause of a failure.
var errorLinePattern = regexp.MustCompile(`level=(?:fatal|error)|(?i)error`)

// recordLineFindings records the findings in a line of the log. The caller holds j.mu.
func (j *journal) recordLineFindings(line string) {
	if initializingPattern.MatchString(line) && !isChannelClosed(j.initializing) {
		close(j.initializing)
	}
	for _, wanted := range []*regexp.Regexp{consoleURLPattern, invalidConfigPattern} {
		if found := wanted.FindStringSubmatch(line); found != nil {
			j.finds[wanted] = found[len(found)-1]
		}
	}
	if !errorLinePattern.MatchString(line) {
		return
	}
	for _, c := range failureCauses {
		if c.said.MatchString(line) {
			j.why = c.reason
		}
	}
}

func (j *journal) findPatternMatch(wanted *regexp.Regexp) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.finds[wanted]
}

func isChannelClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// failureReason returns the reason, one word, why the installer failed.
func (j *journal) failureReason() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.why == "" {
		return "InstallFailed"
	}
	return j.why
}

// logExcerpt returns the end of the log. It appends err unless err says only that the installer has
// failed, which the log explains better.
func (j *journal) logExcerpt(err error) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := j.lines
	var exit *exec.ExitError
	if err != nil && (len(lines) == 0 || !errors.As(err, &exit)) {
		lines = append(slices.Clone(lines), j.redactLine(err.Error()))
	}
	return strings.Join(lines, "\n") + "\n"
}
