package capacity

import "slices"

// Newest are the versions that an instance gets which asks for none: the newest of all
// that are ready, as for reserved instances. ok is false if none is.
func Newest(all []Version) (strimzi, kafka, kafkaIBP string, ok bool) {
	v, ok := latest(all)
	if !ok {
		return "", "", "", false
	}
	return v.Strimzi, slices.MaxFunc(v.Kafka, versions), slices.MaxFunc(v.KafkaIBP, versions), true
}
