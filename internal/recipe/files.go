package recipe

import (
	"bytes"
	"io/fs"
)

const (
	programMode fs.FileMode = 0o755
	dataMode    fs.FileMode = 0o644
)

// FileMode returns the mode of a file of a recipe with this content, for recipes that are stored without
// modes, as package embed does: 0755 for a program, which begins with #!, and 0644 for other files.
func FileMode(content []byte) fs.FileMode {
	if bytes.HasPrefix(content, []byte("#!")) {
		return programMode
	}
	return dataMode
}
