package scaling

import "slices"

// NewestVersions returns the versions for an instance that does not ask for any: the newest of all
// that are ready, as for reserved instances. ok is false if none is ready.
func NewestVersions(all []Version) (strimzi, kafka, kafkaIBP string, ok bool) {
	v, ok := latestVersion(all)
	if !ok {
		return "", "", "", false
	}
	return v.Strimzi, slices.MaxFunc(v.Kafka, compareVersions), slices.MaxFunc(v.KafkaIBP, compareVersions), true
}
