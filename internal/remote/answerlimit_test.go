package remote

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A user of a cluster registers an API whose answer is small as sent, and huge as read.
func TestAnswersAreLimitedAsTheyAreRead(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := map[string]int{"/small": 1000, "/large": 1001, "/huge": 100 << 20}[r.URL.Path]
		w.Header().Set("Content-Encoding", "gzip")
		zip := gzip.NewWriter(w)
		for block := bytes.Repeat([]byte{' '}, 1<<16); size > 0; size -= len(block) {
			if _, err := zip.Write(block[:min(size, len(block))]); err != nil {
				return // the client has hung up
			}
		}
		_ = zip.Close()
	}))
	defer server.Close()
	client := http.Client{Transport: limitedTransport{&http.Transport{}, 1000}}
	defer client.CloseIdleConnections()
	for path, want := range map[string]string{
		"/small": "",
		"/large": "the cluster's answer to /large has more than 1000 bytes",
		"/huge":  "the cluster's answer to /huge has more than 1000 bytes",
	} {
		response, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if want == "" && (err != nil || len(content) != 1000) || want != "" && (err == nil || !strings.Contains(err.Error(), want) || len(content) > 1000) {
			t.Errorf("%s: %d bytes, %v", path, len(content), err)
		}
	}
}
