### Claim and watch
tidy
apply < inventory-1.yaml
sed 's/: foo/: bar/; s/"10.0.0.10"/"10.0.0.12"/; s/"10.0.0.11"/"10.0.0.13"/' inventory-1.yaml | apply
apply < inventory-3.yaml
### Try it on this machine
running
tidy
hotspare down
cp inventory-4.yaml prepared.yaml
### Repair a broken entry
apply < inventory-1.yaml
apply < prepared.yaml
