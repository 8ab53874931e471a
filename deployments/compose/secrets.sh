#!/bin/sh
# Makes the secrets that compose.yaml names, in the folder secrets/ beside this file. Those that exist stay.
set -eu
cd "$(dirname "$0")"
umask 022  # the users in the containers must read the files; the folder keeps other users of this machine out
mkdir -p secrets/keys
chmod 700 secrets
for name in postgres_password redis_password s3_access_key s3_secret_key; do
	[ -s "secrets/$name" ] || od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >"secrets/$name"
done
cat >secrets/s3.json <<JSON
{"identities": [{"name": "fathom", "actions": ["Admin"],
  "credentials": [{"accessKey": "$(cat secrets/s3_access_key)", "secretKey": "$(cat secrets/s3_secret_key)"}]}]}
JSON
echo "The secrets are in $(pwd)/secrets. Put keys of models and searches into secrets/keys, one a file:"
echo "  printf %s 'sk-...' > secrets/keys/OPENAI_API_KEY"
