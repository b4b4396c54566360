package controlplane

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"hotspare.io/hotspare/internal/embedded/controlplane/etcdclient"
)

var (
	killRounds = flag.Int("kill.rounds", 4, "how many times the store is killed while it is written to")
	killSeed   = flag.Uint64("kill.seed", 0, "seed of the moments at which it is killed; 0 takes one from the clock")
)

const (
	// storeFolderVariable is the variable with the folder of the store, for the process that is killed.
	storeFolderVariable = "HOTSPARE_TEST_STORE"
	storeWriters        = 4
	storePrefix         = "/written/"
	// deletionPeriod is the number of writes of a key before it begins anew. The last of them deletes the key.
	deletionPeriod = 7
	compactionLag  = 20
)

// openStore starts a store with the settings of a control plane, and the client that its API server uses.
func openStore(t *testing.T, dir string) *kubernetes.Client {
	t.Helper()
	e, err := startEtcd(t.Context(), filepath.Join(dir, "data"), filepath.Join(dir, "run"), io.Discard, func(err error) { t.Errorf("the store cannot continue: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	client := etcdclient.New(e.server.Server)
	t.Cleanup(func() {
		_ = client.Close()
		e.stopAndClean()
	})
	return client
}

// TestStoreToKill is the process that TestNothingIsLostWhenTheStoreIsKilled kills. It writes until then, and prints what the
// store has acknowledged.
func TestStoreToKill(t *testing.T) {
	dir := os.Getenv(storeFolderVariable)
	if dir == "" {
		t.Skip("runs only as a process of another test")
	}
	client := openStore(t, dir)
	var printing sync.Mutex
	acknowledge := func(format string, args ...any) {
		printing.Lock()
		defer printing.Unlock()
		_, _ = fmt.Fprintf(os.Stdout, "ack "+format+"\n", args...)
	}
	for w := range storeWriters {
		go write(t, client, w, acknowledge)
	}
	for ctx := t.Context(); ; {
		head, err := client.Client.Get(ctx, storePrefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err == nil && head.Header.Revision > compactionLag {
			rev := head.Header.Revision - compactionLag
			if _, err = client.Client.Compact(ctx, rev); err == nil {
				acknowledge("compacted 0 %d", rev)
			}
		}
		if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
			t.Errorf("compacting: %v", err)
			return
		}
	}
}

// write writes the numbers that follow the last one of a writer into its key, in transactions as an API server does, and
// deletes the key now and then.
func write(t *testing.T, client *kubernetes.Client, writer int, acknowledge func(string, ...any)) {
	key := fmt.Sprint(storePrefix, writer)
	found, err := client.Kubernetes.Get(t.Context(), key, kubernetes.GetOptions{})
	if err != nil {
		t.Errorf("reading %s: %v", key, err)
		return
	}
	n, rev := -1, int64(0)
	if found.KV != nil {
		n, _ = strconv.Atoi(string(found.KV.Value))
		rev = found.KV.ModRevision
	}
	for {
		n++
		if isDeletion(n) {
			answer, err := client.OptimisticDelete(t.Context(), key, rev, kubernetes.DeleteOptions{})
			if err != nil || !answer.Succeeded {
				t.Errorf("deleting %s at %d: %v, %v", key, rev, answer, err)
				return
			}
			acknowledge("%d %d %d", writer, n, answer.Revision)
			n, rev = -1, 0
			continue
		}
		answer, err := client.OptimisticPut(t.Context(), key, []byte(strconv.Itoa(n)), rev, kubernetes.PutOptions{})
		if err != nil || !answer.Succeeded {
			t.Errorf("writing %s at %d: %v, %v", key, rev, answer, err)
			return
		}
		rev = answer.Revision
		acknowledge("%d %d %d", writer, n, rev)
	}
}

// isDeletion reports whether the write with that number deletes the key; the next one begins with 0.
func isDeletion(n int) bool { return n == deletionPeriod-1 }

// written has what the process that was killed has printed.
type written struct {
	// last has the number and the revision of the last acknowledged write of each writer.
	last map[int]acknowledged
	// all maps the revisions of the acknowledged writes to them.
	all map[int64]acknowledged
	// compacted is the last acknowledged compaction.
	compacted int64
}

type acknowledged struct {
	writer, number int
	revision       int64
}

// TestNothingIsLostWhenTheStoreIsKilled kills a process that writes to its store, at random moments, and opens the store again: each
// acknowledged write is there, and at most one more of each writer; a watch from the last compaction on gets them all, in
// order; and what was compacted stays so.
func TestNothingIsLostWhenTheStoreIsKilled(t *testing.T) {
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-kill.seed=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	before := written{last: map[int]acknowledged{}}
	for range *killRounds {
		w := writeAndKill(t, dir, 50+random.IntN(400))
		for writer, ack := range before.last {
			if _, again := w.last[writer]; !again { // it had no time for another write
				w.last[writer] = ack
			}
		}
		w.compacted = max(w.compacted, before.compacted)
		if !t.Run("opened again", func(t *testing.T) { w.check(t, openStore(t, dir)) }) {
			return
		}
		before = w
	}
}

// writeAndKill runs the process until it has printed that number of acknowledged writes, and kills it. It returns all acknowledgments.
func writeAndKill(t *testing.T, dir string, acknowledgments int) written {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	process := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestStoreToKill$", "-test.count=1")
	process.Env = append(os.Environ(), storeFolderVariable+"="+dir)
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	w := written{last: map[int]acknowledged{}, all: map[int64]acknowledged{}}
	n := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line, found := strings.CutPrefix(lines.Text(), "ack ")
		if !found {
			t.Log(lines.Text())
			continue
		}
		if !w.add(t, line) {
			continue
		}
		if n++; n == acknowledgments {
			_ = process.Process.Kill() // what it had printed before is still read
		}
	}
	_ = process.Wait()
	if n < acknowledgments {
		t.Fatalf("the process ended after %d writes", n)
	}
	return w
}

// add adds an acknowledgment, and reports whether it is that of a write.
func (w *written) add(t *testing.T, line string) bool {
	t.Helper()
	var kind string
	var a acknowledged
	if _, err := fmt.Sscan(line, &kind, &a.number, &a.revision); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if kind == "compacted" {
		w.compacted = a.revision
		return false
	}
	a.writer, _ = strconv.Atoi(kind)
	w.last[a.writer], w.all[a.revision] = a, a
	return true
}

func (w *written) check(t *testing.T, client *kubernetes.Client) {
	t.Helper()
	for writer, ack := range w.last {
		key := fmt.Sprint(storePrefix, writer)
		found, err := client.Kubernetes.Get(t.Context(), key, kubernetes.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		is := deletionPeriod - 1
		if found.KV != nil {
			is, _ = strconv.Atoi(string(found.KV.Value))
		}
		if next := (ack.number + 1) % deletionPeriod; is != ack.number && is != next {
			t.Errorf("%s: write %d was acknowledged, and the store has %d", key, ack.number, is)
		}
		w.last[writer] = acknowledged{writer: writer, number: is} // for a writer that has no time for another write in the next round
	}
	if w.compacted > 0 {
		if _, err := client.Client.Get(t.Context(), storePrefix, clientv3.WithPrefix(), clientv3.WithRev(w.compacted-1)); !errors.Is(err, rpctypes.ErrCompacted) {
			t.Errorf("revision %d was compacted at %d, and reading it returns %v", w.compacted-1, w.compacted, err)
		}
	}
	w.checkWatch(t, client)
}

// checkWatch watches from the oldest revision that the store has, to the newest.
func (w *written) checkWatch(t *testing.T, client *kubernetes.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	head, err := client.Client.Put(ctx, storePrefix+"end", "")
	if err != nil {
		t.Fatal(err)
	}
	from, last := max(w.compacted, 1), int64(0) // 0 would watch from now on
	seen := map[int64]*clientv3.Event{}
	for events := client.Client.Watch(ctx, storePrefix, clientv3.WithPrefix(), clientv3.WithRev(from)); last < head.Header.Revision; {
		answer, open := <-events
		if answer.CompactRevision > from { // a compaction that was not acknowledged
			from = answer.CompactRevision
			events = client.Client.Watch(ctx, storePrefix, clientv3.WithPrefix(), clientv3.WithRev(from))
			continue
		}
		if !open || answer.Err() != nil {
			t.Fatalf("the watch from %d ended at %d of %d: %v", from, last, head.Header.Revision, answer.Err())
		}
		for _, e := range answer.Events {
			if e.Kv.ModRevision <= last {
				t.Fatalf("revision %d comes after %d", e.Kv.ModRevision, last)
			}
			last = e.Kv.ModRevision
			seen[last] = e
		}
	}
	for rev, ack := range w.all {
		if rev < from {
			continue
		}
		e := seen[rev]
		if e == nil || string(e.Kv.Key) != fmt.Sprint(storePrefix, ack.writer) || (e.Type == clientv3.EventTypeDelete) != isDeletion(ack.number) {
			t.Errorf("write %d of writer %d was acknowledged as revision %d, and the watch got %v", ack.number, ack.writer, rev, e)
		}
	}
}

// TestEachWriteIsSynced counts how often the log of the store is synced to the disk: a write is acknowledged only after
// that, so writes one after the other cannot share a sync.
func TestEachWriteIsSynced(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	client := openStore(t, dir)
	const writes = 20
	before := countSyncs(t)
	for range writes {
		if _, err := client.Client.Put(t.Context(), "/key", "value"); err != nil {
			t.Fatal(err)
		}
	}
	if n := countSyncs(t) - before; n < writes {
		t.Errorf("%d writes one after the other, and the log was synced %d times", writes, n)
	}
}

func countSyncs(t *testing.T) uint64 {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "etcd_disk_wal_fsync_duration_seconds" {
			return f.GetMetric()[0].GetHistogram().GetSampleCount()
		}
	}
	t.Fatal("etcd does not count its syncs")
	return 0
}
