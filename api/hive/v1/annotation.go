package v1

import "strconv"

// IsTrue reports whether the value of key, in the annotations or labels of an object, is true in
// one of the spellings that strconv.ParseBool accepts, as Hive reads it. An absent value, or one
// that is not a boolean, is false.
func IsTrue(values map[string]string, key string) bool {
	value := values[key]
	if value == "" {
		return false // the usual case, for which ParseBool would allocate an error
	}
	is, err := strconv.ParseBool(value)
	return err == nil && is
}
