package remedy

import "testing"

func TestCommandsHaveTheirFlagsWhereTheyCount(t *testing.T) {
	flags := []Flag{{"-n", "team-a"}, {"--data-dir", ""}, {"--context", "c"}}
	for got, want := range map[string]string{
		FormatCommand(flags, "claim release x"):                         "hotspare claim release x -n team-a --context c",
		FormatCommand(flags, "kubectl edit clusterpool x"):              "hotspare -n team-a --context c kubectl edit clusterpool x",
		FormatCommand(nil, "fleet status"):                              "hotspare fleet status",
		FormatCommand(nil, "kubectl get pods"):                          "hotspare kubectl get pods",
		FormatCommand([]Flag{{"--data-dir", "/a b/c"}}, "claim list"):   "hotspare claim list --data-dir '/a b/c'",
		FormatCommand([]Flag{{"--data-dir", "/it's"}}, "claim list"):    `hotspare claim list --data-dir '/it'\''s'`,
		FormatPlainCommand("fleet", "fleet explain %s", "use1"):         "hotspare fleet explain use1 -n fleet",
		FormatPlainCommand("", "kubectl edit instancetype %s", "dev"):   "hotspare kubectl edit instancetype dev",
		FormatPlainCommand("fleet", "kubectl edit fleetregion %s", "r"): "hotspare -n fleet kubectl edit fleetregion r",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
