### Deleting
region
apply < dataplane-1.yaml

### Instances without a ServiceInstance
region
apply < dataplane-1.yaml
