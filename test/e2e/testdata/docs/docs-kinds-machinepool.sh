### Smallest example
apply < machinepool-1.yaml
