package v1alpha1

import hivev1 "hotspare.io/hotspare/api/hive/v1"

// UnmarshalJSON decodes as much as possible: see hivev1.Reading.
func (pp *PoolPolicy) UnmarshalJSON(data []byte) error {
	type plain PoolPolicy
	p, r, err := hivev1.Read[plain](data)
	p.Reading = r
	*pp = PoolPolicy(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see hivev1.Reading.
func (c *ClaimPolicy) UnmarshalJSON(data []byte) error {
	type plain ClaimPolicy
	p, r, err := hivev1.Read[plain](data)
	p.Reading = r
	*c = ClaimPolicy(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see hivev1.Reading.
func (s *ClaimSet) UnmarshalJSON(data []byte) error {
	type plain ClaimSet
	p, r, err := hivev1.Read[plain](data)
	p.Reading = r
	*s = ClaimSet(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see hivev1.Reading.
func (b *ClusterBootstrap) UnmarshalJSON(data []byte) error {
	type plain ClusterBootstrap
	p, r, err := hivev1.Read[plain](data)
	p.Reading = r
	*b = ClusterBootstrap(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see hivev1.Reading.
func (t *InstanceType) UnmarshalJSON(data []byte) error {
	type plain InstanceType
	p, r, err := hivev1.Read[plain](data)
	p.Reading = r
	*t = InstanceType(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see hivev1.Reading.
func (f *FleetRegion) UnmarshalJSON(data []byte) error {
	type plain FleetRegion
	p, r, err := hivev1.Read[plain](data)
	p.Reading = r
	*f = FleetRegion(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see hivev1.Reading.
func (d *DataPlane) UnmarshalJSON(data []byte) error {
	type plain DataPlane
	p, r, err := hivev1.Read[plain](data)
	p.Reading = r
	*d = DataPlane(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see hivev1.Reading.
func (i *ServiceInstance) UnmarshalJSON(data []byte) error {
	type plain ServiceInstance
	p, r, err := hivev1.Read[plain](data)
	p.Reading = r
	*i = ServiceInstance(p)
	return err
}
