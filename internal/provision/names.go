package provision

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// AttemptName returns the name of an attempt's ClusterProvision. It is derived from the cluster
// and the number, so that an attempt cannot be recorded twice.
func AttemptName(cluster string, uid types.UID, number int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", uid, number))
	return fmt.Sprintf("%s-%d-%s", cluster, number, hex.EncodeToString(sum[:])[:5])
}

// unknownLabelValue is the value of a label whose value is unknown, as in Hive.
const unknownLabelValue = "unknown"

// ClusterLabels returns the labels that describe a cluster. It keeps the cluster type that the
// user set.
func ClusterLabels(p hivev1.Platform, now map[string]string) map[string]string {
	typ := now[hivev1.LabelType]
	if typ == "" {
		typ = "unmanaged"
	}
	name := p.Name()
	if name == "agentBareMetal" {
		name = "agent-baremetal"
	}
	return map[string]string{
		hivev1.LabelPlatform: labelValue(name),
		hivev1.LabelRegion:   labelValue(p.Settings().Region),
		hivev1.LabelType:     typ,
	}
}

// VersionLabels returns the labels for an installed cluster's version; none if v is not a
// version. It removes build metadata, because labels cannot contain its +.
func VersionLabels(v string) map[string]string {
	parsed, err := version.ParseSemantic(v)
	if err != nil {
		return nil
	}
	full, _, _ := strings.Cut(v, "+")
	minor := fmt.Sprintf("%d.%d", parsed.Major(), parsed.Minor())
	return map[string]string{
		hivev1.LabelVersion:                labelValue(full),
		hivev1.LabelVersionMajor:           fmt.Sprint(parsed.Major()),
		hivev1.LabelVersionMajorMinor:      minor,
		hivev1.LabelVersionMajorMinorPatch: fmt.Sprintf("%s.%d", minor, parsed.Patch()),
	}
}

func labelValue(v string) string {
	if v == "" || len(validation.IsValidLabelValue(v)) > 0 {
		return unknownLabelValue
	}
	return v
}
