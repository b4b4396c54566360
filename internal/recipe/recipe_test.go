package recipe

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestARecipeIsRead(t *testing.T) {
	t.Parallel()
	r := directories.with(programs{FileName: directories[FileName] + "timeouts: {create: 20m}\n"}).load(t)
	if r.Name != "directories" || r.Version != "1" || !r.CanHibernate() || r.Has(Logs) || !r.Has(Prepare) {
		t.Errorf("got %+v", r)
	}
	if r.Timeout(Create) != 20*time.Minute || r.Timeout(Stop) != 5*time.Minute {
		t.Errorf("timeouts are %s and %s", r.Timeout(Create), r.Timeout(Stop))
	}
}

func TestWhatIsWrongWithARecipeIsNamed(t *testing.T) {
	t.Parallel()
	yaml := func(old, replacement string) programs {
		return programs{FileName: strings.Replace(directories[FileName], old, replacement, 1)}
	}
	for name, c := range map[string]struct {
		change programs
		want   string
	}{
		"no description":              {programs{FileName: ""}, "is not a recipe, because it has no file recipe.yaml"},
		"not YAML":                    {programs{FileName: "\t"}, "recipe.yaml"},
		"a field with a typing error": {yaml("version:", "vesion:"), `unknown field "vesion"`},
		"another version":             {yaml("recipe.hotspare.io/v1", "recipe.hotspare.io/v9"), `apiVersion is "recipe.hotspare.io/v9"`},
		"another name":                {yaml("name: directories", "name: folders"), `name "folders" differs from the name of the folder, "directories"`},
		"a name with capitals":        {yaml("name: directories", "name: Directories"), `"Directories" is not a valid name of a recipe: use at most 63 lowercase letters`},
		"no create":                   {programs{"create": ""}, "program create is missing"},
		"no destroy":                  {programs{"destroy": ""}, "program destroy is missing"},
		"stop without start":          {programs{"start": ""}, "has only one of the programs start and stop"},
		"stop without observe":        {programs{"observe": ""}, "program observe is missing"},
		"Windows' line ends":          {programs{"stop": "#!/bin/sh -eu\r\ntrue\r\n"}, "the first line of program stop ends with a carriage return"},
		"an unknown timeout":          {programs{FileName: directories[FileName] + "timeouts: {creat: 1m}\n"}, `"creat" is not a verb: use one of prepare, create`},
		"a timeout of nothing":        {programs{FileName: directories[FileName] + "timeouts: {create: 0s}\n"}, "timeouts.create: 0s is too short"},
		"a path as program":           {yaml("[sh]", "[/bin/sh]"), `"/bin/sh" is not the name of a program`},
		"a number as parameter":       {yaml(`workers: {`, `workers: {type: integer, `), `with.properties.workers: type is "integer": all parameters are strings`},
		"a bad pattern":               {yaml(`^[0-9]$`, `[`), "with.properties.workers: pattern"},
		"a default out of range":      {yaml(`"2"`, `"many"`), `with.properties.workers: default: "many" does not match`},
		"a parameter in capitals":     {yaml("workers:", "Workers:"), `"Workers" is not a valid name of a parameter`},
		"an unknown required one":     {yaml("[world]", "[word]"), `with.required: "word" is not among the properties`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Load(directories.with(c.change).write(t)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestProgramsMustBeExecutableFiles(t *testing.T) {
	t.Parallel()
	dir := directories.write(t)
	if err := os.Chmod(filepath.Join(dir, "create"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "stop")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "stop"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Load(dir)
	for _, want := range []string{"program create is not executable: run chmod +x " + dir + "/create", "stop is not a regular file"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	p := directories.load(t).Parameters
	got, err := p.Complete(map[string]string{"world": "/w"})
	if want := map[string]string{"world": "/w", "workers": "2"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for want, given := range map[string]map[string]string{
		"with.world is required: set it (the folder of all clusters)":      {},
		`with.workers: "10" does not match ^[0-9]$`:                        {"world": "/w", "workers": "10"},
		"with.wrold: the recipe has no such parameter: use workers, world": {"wrold": "/w"},
		`with.world: "" is shorter than 1 characters`:                      {"world": ""},
		"with.world: it has 5000 bytes: use at most 4096":                  {"world": strings.Repeat("w", 5000)},
		"contains a zero byte":                                             {"world": "a\x00b"},
	} {
		if _, err := p.Complete(given); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v", given, err)
		}
	}
	none, err := NewParameters(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := none.Complete(map[string]string{"a": ""}); err == nil || !strings.Contains(err.Error(), "it has no parameters, so remove with") {
		t.Errorf("got %v", err)
	}
}
