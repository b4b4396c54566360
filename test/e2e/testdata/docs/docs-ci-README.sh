### The account
tidy
cp README-1.yaml pool.yaml
cp README-2.yaml account.yaml
### The secret of your CI system
until [ -n "$(kubectl -n ci get secret ci-token -o jsonpath='{.data.token}')" ]; do sleep 0.2; done
### The short way: `hotspare claim run`
cp README-3.yaml pool-admin.yaml
