### Helm charts
printf chart | gzip > web-1.2.3.tgz
