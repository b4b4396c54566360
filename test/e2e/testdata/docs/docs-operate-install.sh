### By hand
hotspare down
### Metrics
kill "$(cat ~/manager.pid)"
hotspare down
hotspare up --detach
hotspare kubectl create namespace monitoring
