package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestClaimRunLendsAClusterToACommand(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	pool := fakePool(ns, "ci", 2, 2)
	h.create(t, pool)
	h.settled(t, pool)

	r := h.run(t, "", "claim", "run", "ci", "-n", ns, "--", "sh", "-c",
		`stat -c %a "$KUBECONFIG"; grep -c server: "$KUBECONFIG"; echo "$KUBECONFIG"; echo "$HOTSPARE_CLAIM"; echo "$HOTSPARE_CLUSTER"; exit 7`)
	if r.code != 7 {
		t.Fatalf("exit code %d, want the command's, 7\n%s", r.code, r.all())
	}
	lines := strings.Fields(r.out)
	if len(lines) != 5 || lines[0] != "600" || lines[1] != "1" {
		t.Fatalf("the command should find a private kubeconfig, its claim and its cluster:\n%s", r.out)
	}
	if _, err := os.Stat(lines[2]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command has ended, its kubeconfig %s has not: %v", lines[2], err)
	}
	h.gone(t, claimOn(pool, lines[3]))
	h.gone(t, cluster(lines[4]))
	h.settled(t, pool)
}

func TestClaimRunReleasesTheClusterWhenItIsInterrupted(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	pool := fakePool(ns, "ci", 1, 1)
	h.create(t, pool)

	cmd := h.command(t, "claim", "run", "ci", "-n", ns, "--", "sh", "-c", `trap 'exit 3' INT; echo begun; while :; do sleep 0.1; done`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "begun\n" {
		t.Fatalf("the command did not begin: %q, %v\n%s", line, err, &said)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("claim run ended with %v, want the exit code of the command's trap, 3\n%s", err, &said)
	}
	eventually(t, "the claim goes", func(ctx context.Context) error {
		var left hivev1.ClusterClaimList
		if err := h.List(ctx, &left, client.InNamespace(ns)); err != nil {
			return err
		}
		if len(left.Items) > 0 {
			return fmt.Errorf("claim %s is there", left.Items[0].Name)
		}
		return nil
	})
}

// A runner that is lost cannot release its claim: the hub does when the heartbeat stays away.
func TestTheClusterOfAKilledClaimRunIsReleased(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	pool := fakePool(ns, "ci", 1, 1)
	h.create(t, pool)

	cmd := h.command(t, "claim", "run", "ci", "-n", ns, "--heartbeat-timeout", "30s", "--", "sh", "-c", `echo "$HOTSPARE_CLAIM"; while :; do sleep 0.1; done`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	name, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the command did not begin: %q, %v", name, err)
	}
	claim := claimOn(pool, strings.TrimSpace(name))
	eventually(t, "the heartbeat is renewed", func(ctx context.Context) error {
		before := claim.DeepCopy()
		if err := h.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
			return err
		}
		was, is := before.Annotations[hivev1.AnnotationHeartbeat], claim.Annotations[hivev1.AnnotationHeartbeat]
		if was == "" || was == is {
			return fmt.Errorf("the heartbeat is %q, and was %q", is, was)
		}
		return nil
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	_ = cmd.Wait() // it was killed
	idle(func() {
		h.gone(t, claim)
		t.Logf("released %s after the kill", time.Since(killed).Round(time.Millisecond))
	})
	h.gone(t, cluster(claim.Spec.Namespace))
	h.settled(t, pool)
}

func TestClaimRunOfACommandThatDoesNotExistCostsNoCluster(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	h.create(t, fakePool(ns, "ci", 1, 1))
	r := h.run(t, "", "claim", "run", "ci", "-n", ns, "--", "no-such-command")
	if r.code != 127 {
		t.Errorf("exit code %d, want a shell's, 127\n%s", r.code, r.all())
	}
	says(t, r.err, "no-such-command")
	var claims hivev1.ClusterClaimList
	if err := h.List(t.Context(), &claims, client.InNamespace(ns)); err != nil || len(claims.Items) > 0 {
		t.Errorf("%d claims were made, %v", len(claims.Items), err)
	}
}
