//go:build linux

package containernode

import (
	"crypto/sha256"
	"encoding/hex"
)

// machineID returns a machine ID in the format of systemd: 32 hexadecimal digits.
func machineID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}
