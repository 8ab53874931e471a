#!/bin/sh
# Runs a command with secrets from files: each file in /run/secrets and /run/keys that is named like a variable, such as
# OPENAI_API_KEY, becomes that variable. Empty files count as not set.
set -eu
for file in "${SECRETS:-/run/secrets}"/* "${KEYS:-/run/keys}"/*; do
	name=${file##*/}
	case $name in *[!A-Z0-9_]* | [0-9]*) continue ;; esac
	[ -f "$file" ] || continue
	if ! value=$(cat "$file"); then
		echo "fathom: the secret $name cannot be read by user $(id -u): make its file readable (chmod 644)" >&2
		exit 78
	fi
	[ -z "$value" ] || export "$name=$value"
done
# Prefect's background services have no setting for a password of Redis: it is a part of this address.
if [ -n "${PREFECT_REDIS_MESSAGING_PASSWORD:-}" ] && [ -z "${PREFECT_SERVER_DOCKET_URL:-}" ]; then
	redis="${PREFECT_REDIS_MESSAGING_HOST:-redis}:${PREFECT_REDIS_MESSAGING_PORT:-6379}"
	export PREFECT_SERVER_DOCKET_URL="redis://:$PREFECT_REDIS_MESSAGING_PASSWORD@$redis/1"
fi
exec "$@"
