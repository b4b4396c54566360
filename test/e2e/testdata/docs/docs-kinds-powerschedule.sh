### Smallest example
apply < powerschedule-1.yaml
