//go:build !race

package recipes

// raceDetector is true if this test binary contains the race detector.
const raceDetector = false
