package machinepool

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// platform says how the settings of a MachinePool are written into a providerSpec.
type platform struct {
	// zone is the path of the zone in a providerSpec; nil if zones cannot be chosen.
	zone []string
	// suffix returns the end of the name of a MachineSet in a zone, as the installer forms it.
	suffix func(region, zone string) string
	// region is the path of the region in a providerSpec.
	region []string
	// settings maps the fields of spec.platform.<key> to their paths in the providerSpec.
	settings map[string][]string
	// adjustForZone makes the changes that are more than copying one field to one path; may be
	// nil.
	adjustForZone func(provider map[string]any, from, to string) error
}

// platforms are the platforms whose MachineSets are supported, by their key in spec.platform. A
// segment "0" of a path is the first element of a list.
var platforms = map[string]platform{
	"aws": {
		zone: []string{"placement", "availabilityZone"}, region: []string{"placement", "region"},
		suffix: func(_, zone string) string { return "-" + zone },
		settings: map[string][]string{
			"type": {"instanceType"}, "amiID": {"ami", "id"},
			"rootVolume.size": {"blockDevices", "0", "ebs", "volumeSize"},
			"rootVolume.type": {"blockDevices", "0", "ebs", "volumeType"},
			"rootVolume.iops": {"blockDevices", "0", "ebs", "iops"},
			"rootVolume.kmsKeyARN": {
				"blockDevices", "0", "ebs", "kmsKey", "arn",
			},
			"spotMarketOptions": {"spotMarketOptions"},
		},
		adjustForZone: moveSubnetFilters,
	},
	"azure": {
		zone: []string{"zone"}, region: []string{"location"},
		suffix: func(region, zone string) string { return "-" + region + zone },
		settings: map[string][]string{
			"type": {"vmSize"}, "osDisk.diskSizeGB": {"osDisk", "diskSizeGB"},
			"osDisk.diskType": {"osDisk", "managedDisk", "storageAccountType"},
		},
	},
	"gcp": {
		zone: []string{"zone"}, region: []string{"region"},
		suffix: func(region, zone string) string { return "-" + strings.TrimPrefix(zone, region+"-") },
		settings: map[string][]string{
			"type": {"machineType"}, "osDisk.diskSizeGB": {"disks", "0", "sizeGb"}, "osDisk.diskType": {"disks", "0", "type"},
		},
	},
	"vsphere": {settings: map[string][]string{
		"cpus": {"numCPUs"}, "coresPerSocket": {"numCoresPerSocket"}, "memoryMB": {"memoryMiB"},
		"osDisk.diskSizeGB": {"diskGiB"}, "resourcePool": {"workspace", "resourcePool"},
	}},
	"openstack": {settings: map[string][]string{
		"flavor": {"flavor"}, "rootVolume.size": {"rootVolume", "diskSize"}, "rootVolume.type": {"rootVolume", "volumeType"},
	}},
}

// SupportedPlatforms returns the sorted keys of the platforms whose MachineSets are supported.
func SupportedPlatforms() []string { return slices.Sorted(maps.Keys(platforms)) }

// requestedZones returns the zones in the settings; none means all zones that have workers.
func (p platform) requestedZones(settings map[string]any) ([]string, *condition.Value) {
	raw, ok := settings["zones"]
	if !ok || raw == nil {
		return nil, nil
	}
	list, ok := raw.([]any)
	var out []string
	for _, z := range list {
		s, text := z.(string)
		ok = ok && text && s != "" && !slices.Contains(out, s)
		out = append(out, s)
	}
	if !ok {
		v := blockingCondition(hivev1.ReasonUnsupportedSetting, "spec.platform: zones %v is not a list of different names: name each zone once.", raw)
		return nil, &v
	}
	if len(out) > 0 && p.zone == nil {
		v := blockingCondition(hivev1.ReasonUnsupportedSetting,
			"spec.platform: zones are not supported on this platform: remove them, machines are created where the cluster's workers are.")
		return nil, &v
	}
	slices.Sort(out)
	return out, nil
}

// checkSettings reports settings that are not supported. Ignoring one silently would create
// machines that nobody asked for.
func (p platform) checkSettings(key string, settings map[string]any) *condition.Value {
	for _, path := range settingPaths("", settings, p.settings) {
		if _, known := p.settings[path]; !known && path != "zones" {
			v := blockingCondition(hivev1.ReasonUnsupportedSetting, "spec.platform.%s.%s is not supported: remove it; supported are %s.",
				key, path, strings.Join(p.supportedSettings(), ", "))
			return &v
		}
	}
	return nil
}

func (p platform) supportedSettings() []string {
	names := slices.Sorted(maps.Keys(p.settings))
	if p.zone != nil {
		names = append(names, "zones")
	}
	return names
}

// settingPaths returns the sorted paths of the given settings. It does not descend into known
// ones.
func settingPaths(prefix string, settings map[string]any, known map[string][]string) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(settings)) {
		path := prefix + k
		below, nested := settings[k].(map[string]any)
		_, whole := known[path]
		switch {
		case settings[k] == nil:
		case nested && !whole:
			out = append(out, settingPaths(path+".", below, known)...)
		default:
			out = append(out, path)
		}
	}
	return out
}

// buildProviderSpec returns the providerSpec of a MachineSet in zone, based on another's.
func (p platform) buildProviderSpec(template map[string]any, zone string, settings map[string]any) (map[string]any, error) {
	out, _ := deepCopyJSON(template).(map[string]any)
	from := stringAt(out, p.zone)
	if zone != "" && from != zone {
		if err := setValueAt(out, p.zone, zone); err != nil {
			return nil, err
		}
		if p.adjustForZone != nil {
			if err := p.adjustForZone(out, from, zone); err != nil {
				return nil, err
			}
		}
	}
	for _, path := range settingPaths("", settings, p.settings) {
		to, known := p.settings[path]
		if !known {
			continue // zones: see checkSettings
		}
		if err := setValueAt(out, to, deepCopyJSON(valueAt(settings, strings.Split(path, ".")))); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// moveSubnetFilters selects the subnet in another zone: the installer names subnets after their
// zone.
func moveSubnetFilters(provider map[string]any, from, to string) error {
	subnet, _ := provider["subnet"].(map[string]any)
	filters, _ := subnet["filters"].([]any)
	if subnet["id"] != nil || len(filters) == 0 {
		return fmt.Errorf("the subnet of the workers in zone %s is given by its ID, so the subnet in zone %s is unknown", from, to)
	}
	for _, f := range filters {
		filter, _ := f.(map[string]any)
		values, _ := filter["values"].([]any)
		for i, v := range values {
			if s, ok := v.(string); ok && from != "" {
				values[i] = strings.ReplaceAll(s, from, to)
			}
		}
	}
	return nil
}

// valueAt returns the value at a path, nil if there is none.
func valueAt(in any, path []string) any {
	for _, key := range path {
		switch v := in.(type) {
		case map[string]any:
			in = v[key]
		case []any:
			if key != "0" || len(v) == 0 {
				return nil
			}
			in = v[0]
		default:
			return nil
		}
	}
	return in
}

func stringAt(in any, path []string) string {
	if len(path) == 0 {
		return ""
	}
	s, _ := valueAt(in, path).(string)
	return s
}

// setValueAt sets the value at a path. It creates missing mappings on the way, but not lists,
// because it does not know what else their elements need.
func setValueAt(in map[string]any, path []string, value any) error {
	here := in
	for i := 0; i < len(path)-1; i++ {
		next := here[path[i]]
		if path[i+1] == "0" {
			list, _ := next.([]any)
			first, ok := map[string]any(nil), false
			if len(list) > 0 {
				first, ok = list[0].(map[string]any)
			}
			if !ok {
				return fmt.Errorf("the providerSpec of the cluster's workers has no %s", path[i])
			}
			here = first
			i++
			continue
		}
		below, ok := next.(map[string]any)
		if !ok {
			below = map[string]any{}
			here[path[i]] = below
		}
		here = below
	}
	here[path[len(path)-1]] = value
	return nil
}

// deepCopyJSON returns a deep copy of a JSON value.
func deepCopyJSON(in any) any {
	switch v := in.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = deepCopyJSON(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = deepCopyJSON(e)
		}
		return out
	default:
		return in
	}
}
