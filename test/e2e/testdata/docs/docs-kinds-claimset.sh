### Smallest example
tidy
hotspare pool create dev --size 3 --running 3 --fake >/dev/null
apply < claimset-1.yaml
