### Smallest example
tidy
hotspare pool create ci --size 2 --running 1 --fake
apply < poolpolicy-1.yaml
apply < poolpolicy-2.yaml
