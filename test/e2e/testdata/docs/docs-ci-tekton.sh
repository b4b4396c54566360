### The script
kubectl create namespace ci >/dev/null 2>&1 || true
