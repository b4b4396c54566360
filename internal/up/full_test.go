package up

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestALimitThatEndsTheAPIServerIsNamedWithItsRemedy(t *testing.T) {
	write := func(why error) error {
		return &fs.PathError{Op: "write", Path: "/data/hub/etcd/member/snap/db", Err: why}
	}
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"a full disk":         {write(syscall.ENOSPC), []string{"the disk of /data is full: free disk space there, and run hotspare up again", "member/snap/db"}},
		"a quota":             {write(syscall.EDQUOT), []string{"your quota on the disk of /data is exhausted", "run hotspare up again"}},
		"a limit on files":    {write(syscall.EFBIG), []string{"a file in /data has reached the file size limit", "ulimit -f", "run hotspare up again"}},
		"anything else as is": {errors.New("etcd failed: bad luck"), []string{"etcd failed: bad luck"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{hubStoppedError("/data", c.err), explainStartError("/data", c.err)} {
				for _, part := range c.want {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("it does not say %q: %v", part, err)
					}
				}
				if !errors.Is(err, c.err) || isStorageLimit(c.err) != strings.Contains(err.Error(), "hotspare up again") {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

func TestTheRemedyOfALimitIsAddedOnce(t *testing.T) {
	plain := &fs.PathError{Op: "write", Path: "/data/kubeconfig", Err: syscall.ENOSPC}
	once := explainStorageLimit("/data", plain)
	twice := explainStorageLimit("/data", fmt.Errorf("starting: %w", once))
	for _, err := range []error{once, twice} {
		if strings.Count(err.Error(), "run hotspare up again") != 1 || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("got %v", err)
		}
	}
	if err := explainStorageLimit("/data", nil); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestAKindIsServedWhenItIsEstablished(t *testing.T) {
	for name, c := range map[string]struct {
		conditions any
		want       bool
	}{
		"a new one has null":  {nil, false},
		"its names are taken": {[]any{map[string]any{"type": "NamesAccepted", "status": "True"}}, false},
		"not yet":             {[]any{map[string]any{"type": "Established", "status": "False"}}, false},
		"established":         {[]any{map[string]any{"type": "Established", "status": "True"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			crd := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": c.conditions}}}
			if got := isEstablished(crd); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
