### Deleting
region
apply < dataplane-1.yaml
