# One image for all programs, the same for amd64 and arm64: nothing is compiled, every package is a wheel from uv.lock.
#   docker buildx build --platform linux/amd64,linux/arm64 -t registry.example.org/switchback:0.1.0 --push .
#   buildah bud -t localhost/switchback:0.1.0 .
# The base needs Python 3.11 or newer as python3, with venv, and CA certificates. For another base: --build-arg BASE=...
# For another package index than that of the lock file: --build-arg PIP_INDEX_URL=https://index.example.org/simple
ARG BASE=docker.io/library/python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b

FROM ${BASE} AS build
# pip's own variable; unset unless it is given. Whatever the index, every package must have the hash of the lock file.
ARG PIP_INDEX_URL
WORKDIR /src
# Install uv with the version and the hashes from the lock file.
COPY uv.lock ./
RUN python3 -c 'import tomllib; uv, = (one for one in tomllib.load(open("uv.lock", "rb"))["package"] if one["name"] == "uv"); print("uv==" + uv["version"], *("--hash=" + wheel["hash"] for wheel in uv["wheels"]))' > /tmp/uv.txt \
 && python3 -m venv /opt/uv \
 && /opt/uv/bin/pip install --no-cache-dir --disable-pip-version-check --only-binary :all: --require-hashes -r /tmp/uv.txt
ENV UV_PROJECT_ENVIRONMENT=/app \
    UV_PYTHON=python3 \
    UV_PYTHON_DOWNLOADS=never \
    UV_NO_CACHE=1 \
    UV_LINK_MODE=copy \
    SOURCE_DATE_EPOCH=0
# Dependencies first, because they change less often than the programs.
COPY pyproject.toml ./
# `uv sync` downloads from the addresses in the lock file; only `uv pip` takes the same packages from another index.
RUN if [ -z "${PIP_INDEX_URL:-}" ]; then /opt/uv/bin/uv sync --frozen --no-dev --no-install-project --no-build; else \
    /opt/uv/bin/uv export --quiet --frozen --no-dev --no-emit-project --output-file /tmp/app.txt \
 && /opt/uv/bin/uv venv --no-project /app \
 && /opt/uv/bin/uv pip install --python /app --default-index "$PIP_INDEX_URL" --no-build --require-hashes -r /tmp/app.txt; fi
COPY README.md LICENSE ./
COPY sidecar ./sidecar
COPY dnsproxy ./dnsproxy
COPY proxy ./proxy
COPY wholeip ./wholeip
# Compile byte code that is validated by the source's hash, not its time: the root is read-only, and equal sources give
# equal layers. Skip the kubernetes package, which would need 50 MB: it reads kubeconfigs, and no pod imports it.
# Remove uv's own records, which contain timestamps.
RUN if [ -n "${PIP_INDEX_URL:-}" ]; then export UV_DEFAULT_INDEX="$PIP_INDEX_URL"; fi \
 && /opt/uv/bin/uv sync --frozen --no-dev --no-editable \
 && /app/bin/python -m compileall -q --invalidation-mode unchecked-hash -x /kubernetes/ /app/lib \
 && rm /app/.lock /app/lib/python3*/site-packages/switchback-*.dist-info/uv_cache.json \
 && sed -i '/uv_cache.json/d' /app/lib/python3*/site-packages/switchback-*.dist-info/RECORD

FROM ${BASE} AS programs
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="switchback" \
      org.opencontainers.image.description="Lets pods reach their own cluster's public hostnames behind a PROXY protocol load balancer" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /app /app
ENV PATH=/app/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1
# A number, because the kubelet cannot check runAsNonRoot for a user name.
USER 65532:65532
CMD ["dnsproxy", "--help"]

# --target with-nftables: adds nft, which wholeip runs. It comes from the base's package sources, so two builds may differ.
FROM programs AS with-nftables
USER 0
RUN apt-get update \
 && apt-get install --yes --no-install-recommends nftables \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/apt /var/log/dpkg.log
# Debian installs nft in /usr/sbin.
ENV PATH=/app/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin
USER 65532:65532

FROM programs
