# Fathom, its workers' and its Prefect servers' image:  docker build -t fathom .
#
# NOT BUILT where it was written, for want of a container engine. What it installs and runs was run without one, as
# deployments/README.md says.
FROM python:3.12-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /app
RUN python -m venv /opt/fathom
COPY requirements-image.lock ./
RUN /opt/fathom/bin/pip install --require-hashes --no-deps -r requirements-image.lock
COPY pyproject.toml prefect.yaml README.md LICENSE CHANGELOG.md ./
COPY fathom fathom
COPY tasks tasks
COPY flows flows
COPY deployments/container deployments/container
# Bytecode is compiled here: the root file system may be read-only later. It has no home for anything else either.
RUN /opt/fathom/bin/pip install --no-build-isolation --no-deps --editable . \
    && /opt/fathom/bin/python -m compileall -q fathom tasks flows

FROM python:3.12-slim
COPY --from=build /opt/fathom /opt/fathom
COPY --from=build /app /app
# All that is written at run time goes below /tmp; results go to the artifact store.
ENV PATH=/opt/fathom/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp/home \
    XDG_CACHE_HOME=/tmp/cache \
    PREFECT_HOME=/tmp/prefect \
    PREFECT_SERVER_UI_STATIC_DIRECTORY=/tmp/ui \
    PREFECT_CLI_PROMPT=false \
    PREFECT_SERVER_ANALYTICS_ENABLED=false \
    DO_NOT_TRACK=1
WORKDIR /app
# A number, so that Kubernetes can tell that it is not root.
USER 10001:10001
ENTRYPOINT ["/app/deployments/container/entrypoint.sh"]
HEALTHCHECK --interval=30s --timeout=10s --start-period=90s --retries=3 \
    CMD ["python", "/app/deployments/container/connected.py"]
CMD ["fathom", "worker", "--pool", "fathom", "--limit", "8"]
