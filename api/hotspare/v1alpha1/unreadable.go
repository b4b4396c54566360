package v1alpha1

import hivev1 "hotspare.io/hotspare/api/hive/v1"

// UnmarshalJSON decodes as much as possible: see hivev1.Reading.
func (o *PoolPolicy) UnmarshalJSON(data []byte) error {
	type plain PoolPolicy
	p, r, err := hivev1.Read[plain](data)
	p.Reading = r
	*o = PoolPolicy(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see hivev1.Reading.
func (o *ClaimPolicy) UnmarshalJSON(data []byte) error {
	type plain ClaimPolicy
	p, r, err := hivev1.Read[plain](data)
	p.Reading = r
	*o = ClaimPolicy(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see hivev1.Reading.
func (o *ClaimSet) UnmarshalJSON(data []byte) error {
	type plain ClaimSet
	p, r, err := hivev1.Read[plain](data)
	p.Reading = r
	*o = ClaimSet(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see hivev1.Reading.
func (o *ClusterBootstrap) UnmarshalJSON(data []byte) error {
	type plain ClusterBootstrap
	p, r, err := hivev1.Read[plain](data)
	p.Reading = r
	*o = ClusterBootstrap(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see hivev1.Reading.
func (o *InstanceType) UnmarshalJSON(data []byte) error {
	type plain InstanceType
	p, r, err := hivev1.Read[plain](data)
	p.Reading = r
	*o = InstanceType(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see hivev1.Reading.
func (o *FleetRegion) UnmarshalJSON(data []byte) error {
	type plain FleetRegion
	p, r, err := hivev1.Read[plain](data)
	p.Reading = r
	*o = FleetRegion(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see hivev1.Reading.
func (o *DataPlane) UnmarshalJSON(data []byte) error {
	type plain DataPlane
	p, r, err := hivev1.Read[plain](data)
	p.Reading = r
	*o = DataPlane(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see hivev1.Reading.
func (o *ServiceInstance) UnmarshalJSON(data []byte) error {
	type plain ServiceInstance
	p, r, err := hivev1.Read[plain](data)
	p.Reading = r
	*o = ServiceInstance(p)
	return err
}
