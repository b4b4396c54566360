//go:build !linux

package recipe

// findMarked finds no processes: only Linux lets a process read the environment of another one.
func findMarked(string) []int { return nil }

func killIfMarked(int, string) {}
