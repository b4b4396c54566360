### By hand
hotspare down
### Metrics
hotspare down
hotspare up --detach
hotspare kubectl create namespace monitoring
