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
### Let users claim
hotspare kubectl create namespace dev >/dev/null 2>&1 || true
hotspare pool create dev -n dev --size 1 --running 1 --workers 0
cp install-1.yaml developers.yaml
