### On one computer
tidy
### What it does, and why
tidy
region
### What would be decided
hotspare kubectl get fleetregions -A -o yaml > edited.yaml
### From kas-fleet-manager
tidy
