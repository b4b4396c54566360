package capacity

import "slices"

// NewestVersions are the versions that an instance gets which asks for none: the newest of all
// that are ready, as for reserved instances. ok is false if none is.
func NewestVersions(all []Version) (strimzi, kafka, kafkaIBP string, ok bool) {
	v, ok := latestVersion(all)
	if !ok {
		return "", "", "", false
	}
	return v.Strimzi, slices.MaxFunc(v.Kafka, compareVersions), slices.MaxFunc(v.KafkaIBP, compareVersions), true
}
