### Smallest example
tidy
hotspare pool create ci --size 2 --running 1 --fake
apply < poolpolicy-1.yaml
apply < poolpolicy-2.yaml
### Depths of sleep
{ echo created; for day in 02 03 04 05 06; do for hour in 08 09 10 11 14; do echo "2026-03-${day}T$hour:12:00Z"; done; done; } > claims.csv
