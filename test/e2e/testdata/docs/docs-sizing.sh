### On a hub
tidy
{ echo created; for day in 02 03 04 05 06; do for hour in 08 09 10 11 14; do echo "2026-03-${day}T$hour:12:00Z"; done; done; } > claims.csv
hotspare pool create ci --size 2 --running 1 --fake
hotspare claim create ci --name mine --wait
apply < sizing-1.yaml
until hotspare kubectl get configmap ci.demand >/dev/null 2>&1; do sleep 1; done
### Try it on your claims
{ echo created; for day in 02 03 04 05 06; do for hour in 08 09 10 11 14; do echo "2026-03-${day}T$hour:12:00Z"; done; done; } > claims.csv
