### 2. Give it an account of AWS
tidy
echo '{"auths":{"quay.io":{"auth":"dXNlcjpwYXNzd29yZA=="}}}' > pull-secret.json
### 3. Choose the release and the machines
cp howto-aws-1.yaml aws.yaml
