package v1

import "testing"

func TestIsTrue(t *testing.T) {
	for value, want := range map[string]bool{
		"true": true, "True": true, "TRUE": true, "t": true, "1": true,
		"false": false, "0": false, "": false, "yes": false, "maybe": false, "true.": false,
	} {
		if got := IsTrue(map[string]string{AnnotationFake: value}, AnnotationFake); got != want {
			t.Errorf("IsTrue of %q is %t, want %t", value, got, want)
		}
	}
	if IsTrue(nil, AnnotationFake) {
		t.Error("an annotation that does not exist is true")
	}
}
