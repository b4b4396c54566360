package etcddata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
)

// entries is the number of writes in the sound data: with a snapshot every 50, it has several.
const entries = 400

// sound creates the data of an etcd that was stopped cleanly.
func sound(t *testing.T) string {
	t.Helper()
	wal.SegmentSizeBytes = 64 << 10 // several files
	dir := t.TempDir()
	c := newConfig(t, dir)
	c.SnapshotCount, c.SnapshotCatchUpEntries = 50, 10
	e := startEtcd(t, c)
	defer e.Close()
	for i := range entries {
		put := &etcdserverpb.PutRequest{Key: fmt.Appendf(nil, "/registry/%d", i%200), Value: bytes.Repeat([]byte{byte(i)}, 2000)}
		if _, err := e.Server.Put(t.Context(), put); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func newConfig(t *testing.T, dir string) *embed.Config {
	t.Helper()
	sockets := shortDir(t)
	c := embed.NewConfig()
	c.Dir, c.UnsafeNoFsync = dir, true // a busy disk would end a test
	c.ListenClientUrls, c.ListenPeerUrls = []url.URL{{Scheme: "unix", Path: sockets + "/c"}}, []url.URL{{Scheme: "unix", Path: sockets + "/p"}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	return c
}

// startEtcd starts etcd and waits until it is ready: half a minute, since it elects itself within
// seconds or never.
func startEtcd(t *testing.T, c *embed.Config) *embed.Etcd {
	t.Helper()
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(2 * time.Minute):
		t.Fatal("etcd is not ready") // Close would wait for it
	}
	return e
}

// shortDir returns a folder whose path is short enough for the address of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "etcd") //nolint:usetesting // the name of t.TempDir is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestPrepareFindsWhatEtcdCannotRead(t *testing.T) {
	original := sound(t)
	if err := Prepare(original); err != nil {
		t.Fatalf("sound data: %v", err)
	}
	database := func(dir string) string { return filepath.Join(dir, "member", "snap", "db") }
	logs := func(dir string) []string { return glob(t, filepath.Join(dir, "member", "wal", "*.wal")) }
	last := func(dir string) string { all := logs(dir); return all[len(all)-1] }
	for name, damage := range map[string]func(dir string) error{
		"every log file cut":       func(dir string) error { return truncate(10000, logs(dir)...) },
		"the last log file cut":    func(dir string) error { return truncate(100, last(dir)) },
		"the last log file empty":  func(dir string) error { return truncate(0, last(dir)) },
		"the last log file gone":   func(dir string) error { return os.Remove(last(dir)) },
		"garbage in the last log":  func(dir string) error { return scribble(last(dir), 2000, 4000) },
		"no log":                   func(dir string) error { return os.RemoveAll(filepath.Join(dir, "member", "wal")) },
		"the database cut":         func(dir string) error { return truncate(64<<10, database(dir)) },
		"the database empty":       func(dir string) error { return truncate(0, database(dir)) },
		"the database gone":        func(dir string) error { return os.Remove(database(dir)) },
		"garbage in the database":  func(dir string) error { return scribble(database(dir), 8<<10, size(t, database(dir))-8<<10) },
		"garbage as the database":  func(dir string) error { return scribble(database(dir), 0, size(t, database(dir))) },
		"the database is all zero": func(dir string) error { return overwrite(database(dir), make([]byte, size(t, database(dir)))) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := copied(t, original)
			if err := damage(dir); err != nil {
				t.Fatal(err)
			}
			var damaged *CorruptError
			if err := Prepare(dir); !errors.As(err, &damaged) || !strings.HasPrefix(damaged.Path, dir) {
				t.Errorf("it says %v", err)
			} else {
				t.Log(err)
			}
		})
	}
}

// A killed process leaves such data, and etcd can continue with it.
func TestPrepareAcceptsWhatEtcdMends(t *testing.T) {
	original := sound(t)
	for name, change := range map[string]func(dir string) error{
		"nothing":   func(string) error { return nil },
		"no folder": os.RemoveAll,
		"a snapshot that is cut": func(dir string) error {
			return truncate(10, glob(t, filepath.Join(dir, "member", "snap", "*.snap"))...)
		},
		"a database before its first entry": func(dir string) error {
			if err := os.RemoveAll(filepath.Join(dir, "member")); err != nil {
				return err
			}
			return emptyDatabase(dir)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copied(t, original)
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
			if err := Prepare(dir); err != nil {
				t.Error(err)
			}
		})
	}
}

// The log of an etcd that was killed in its first start ends after one of its first records. etcd must start
// on the data: with the log if its membership is committed there, otherwise with a new one.
func TestEtcdStartsAfterAKillInItsFirstStart(t *testing.T) {
	original := t.TempDir()
	startEtcd(t, newConfig(t, original)).Close()
	name := filepath.Join("member", "wal", "0000000000000000-0000000000000000.wal")
	content, err := os.ReadFile(filepath.Join(original, name))
	if err != nil {
		t.Fatal(err)
	}
	records, kept, removed := 0, 0, 0
	for end := 0; ; {
		length := recordLength(content[end:])
		if length == 0 {
			break
		}
		end += length
		if records++; records < 3 { // etcd names the folder wal after its third record
			continue
		}
		dir := t.TempDir()
		if err := emptyDatabase(dir); err != nil {
			t.Fatal(err)
		}
		cut := make([]byte, len(content)) // etcd allocates the file as zeros
		copy(cut, content[:end])
		if err := errors.Join(os.Mkdir(filepath.Join(dir, "member", "wal"), 0o700), os.WriteFile(filepath.Join(dir, name), cut, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := Prepare(dir); err != nil {
			t.Errorf("%d bytes: %v", end, err)
			continue
		}
		if wal.Exist(filepath.Join(dir, "member", "wal")) {
			kept++
		} else {
			removed++
		}
		e := startEtcd(t, newConfig(t, dir))
		_, err = e.Server.Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte("/registry/a"), Value: []byte("b")})
		e.Close()
		if err != nil {
			t.Errorf("%d bytes: %v", end, err)
		}
	}
	if kept == 0 || removed == 0 {
		t.Errorf("%d logs were kept and %d removed: there must be both", kept, removed)
	}
}

// recordLength returns how many bytes the first record of a log takes, or 0 if there is none. Before each
// record is its length, whose first byte is the number of bytes of padding if its first bit is set.
func recordLength(log []byte) int {
	field := binary.LittleEndian.Uint64(log)
	if field == 0 {
		return 0
	}
	length := field & (1<<56 - 1)
	if field>>63 == 1 {
		length += field >> 56 & 7
	}
	return 8 + int(length)
}

// emptyDatabase creates the database of an etcd that has applied no entry.
func emptyDatabase(dir string) error {
	path := filepath.Join(dir, "member", "snap", "db")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		return err
	}
	return db.Close()
}

// Whatever bytes are damaged, the check neither panics nor hangs.
func TestPrepareSurvivesAnyDamage(t *testing.T) {
	original, seed := sound(t), uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	files := append(glob(t, filepath.Join(original, "member", "snap", "*")), glob(t, filepath.Join(original, "member", "wal", "*"))...)
	found := 0
	const rounds = 60
	for range rounds {
		dir := copied(t, original)
		path := filepath.Join(dir, strings.TrimPrefix(files[random.IntN(len(files))], original))
		length := size(t, path)
		var err error
		switch random.IntN(3) {
		case 0:
			err = truncate(random.Int64N(length), path)
		case 1:
			err = overwrite(path, make([]byte, random.Int64N(length)+1))
		default:
			from := random.Int64N(length)
			err = scribble(path, from, random.Int64N(length-from)+1)
		}
		if err != nil {
			t.Fatal(err)
		}
		if Prepare(dir) != nil {
			found++
		}
	}
	t.Logf("%d of %d were found", found, rounds)
	if found == 0 {
		t.Error("nothing was found")
	}
}

// A sound database that cannot be opened at the moment is not reported as damaged.
func TestPrepareDoesNotBlameTheData(t *testing.T) {
	dir := sound(t)
	db, err := bbolt.Open(filepath.Join(dir, "member", "snap", "db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := Prepare(dir); !errors.Is(err, ErrOpen) {
		t.Errorf("while another has it open: %v", err)
	}
	for _, code := range []syscall.Errno{syscall.EMFILE, syscall.EACCES} {
		err := readRecovering(dir, func() error { return &fs.PathError{Op: "open", Path: dir, Err: code} })
		var damaged *CorruptError
		if errors.As(err, &damaged) || !errors.Is(err, code) {
			t.Errorf("%v: it says %v", code, err)
		}
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	return found
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func copied(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "etcd")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

func truncate(to int64, paths ...string) error {
	var errs []error
	for _, path := range paths {
		errs = append(errs, os.Truncate(path, to))
	}
	return errors.Join(errs...)
}

// scribble writes length bytes of garbage at from.
func scribble(path string, from, length int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.NewOffsetWriter(f, from), bytes.NewReader(bytes.Repeat([]byte{0xA5}, int(length))))
	return errors.Join(err, f.Close())
}

func overwrite(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}
