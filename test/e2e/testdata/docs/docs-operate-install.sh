### By hand
running
tidy
hotspare down
### Metrics
kill "$(cat ~/manager.pid)"
hotspare down
hotspare up --detach
hotspare kubectl create namespace monitoring
### The console
hotspare kubectl -n default create serviceaccount viewer >/dev/null 2>&1 || true
