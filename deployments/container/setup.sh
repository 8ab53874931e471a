#!/bin/sh
# What a new installation needs once, and what does no harm later: the bucket, the work pool and the deployments.
set -eu
python - <<'PYTHON'
import os

import s3fs

root = os.environ["FATHOM_ARTIFACTS"]
if root.startswith("s3://"):
    bucket, files = root.removeprefix("s3://").partition("/")[0], s3fs.S3FileSystem()
    if files.exists(bucket):
        print(f"There is a bucket {bucket}.")
    else:
        files.mkdir(bucket)
        print(f"Made the bucket {bucket}.")
PYTHON
prefect work-pool inspect fathom >/dev/null 2>&1 || prefect work-pool create fathom --type process
prefect deploy --all
