package recipe

import (
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// programs are the files of a recipe, by name.
type programs map[string]string

// directories is a recipe whose machines are directories below $RECIPE_WORLD, so that the suite sees
// what is left over.
var directories = programs{
	FileName: `apiVersion: recipe.hotspare.io/v1
kind: Recipe
name: directories
description: Clusters whose machines are directories
version: "1"
with:
  required: [world]
  properties:
    world: {description: the folder of all clusters, minLength: 1}
    workers: {description: the number of workers, default: "2", pattern: "^[0-9]$"}
needs: {programs: [sh]}
`,
	"prepare": `#!/bin/sh
id=$HOTSPARE_NAME-x$(cksum <input.json | cut -d ' ' -f 1)
echo "{\"apiVersion\":\"recipe.hotspare.io/v1\",\"infraID\":\"$id\"}"
`,
	"create": `#!/bin/sh -e
home=$RECIPE_WORLD/$HOTSPARE_INFRA_ID
for m in master-0 $(seq -f worker-%g "$RECIPE_WORKERS"); do
	mkdir -p "$home/$m"
	[ -e "$home/$m/state" ] || echo Running >"$home/$m/state"
	sleep 0.01
done
cat >"$KUBECONFIG" <<EOF
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443"}}]
EOF
`,
	"observe": `#!/bin/sh
cd "$RECIPE_WORLD/$HOTSPARE_INFRA_ID" 2>/dev/null || { echo '{"apiVersion":"recipe.hotspare.io/v1","machines":[]}'; exit; }
printf '{"apiVersion":"recipe.hotspare.io/v1","machines":['
comma=
for m in *; do
	[ -e "$m" ] || continue
	state=$(cat "$m/state" 2>/dev/null || echo Unknown)
	printf '%s{"name":"%s","state":"%s"}' "$comma" "$m" "$state"
	comma=,
done
echo ']}'
`,
	"stop": `#!/bin/sh -e
for m in "$RECIPE_WORLD/$HOTSPARE_INFRA_ID"/*; do echo Stopped >"$m/state"; done
`,
	"start": `#!/bin/sh -e
for m in "$RECIPE_WORLD/$HOTSPARE_INFRA_ID"/*; do echo Running >"$m/state"; done
`,
	"destroy": `#!/bin/sh -e
rm -rf "${RECIPE_WORLD:?}/${HOTSPARE_INFRA_ID:?}"
`,
}

// with returns the recipe with some files replaced; an empty file is left out.
func (p programs) with(changes programs) programs {
	out := maps.Clone(p)
	maps.Copy(out, changes)
	return out
}

// write writes the recipe into a folder named "directories".
func (p programs) write(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "directories")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	syscall.ForkLock.RLock() // a child of another test must not inherit an open file: it could not be executed
	defer syscall.ForkLock.RUnlock()
	for name, content := range p {
		if content == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700); err != nil { //nolint:gosec // programs
			t.Fatal(err)
		}
	}
	return dir
}

func (p programs) load(t *testing.T) *Recipe {
	t.Helper()
	r, err := Load(p.write(t))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
