# One image for all programs, for amd64 and arm64. Nothing of the target runs while it is built, so no emulation is needed:
# every package is a wheel from uv.lock for the target, and the last stages only copy.
#   docker buildx build --platform linux/amd64,linux/arm64 -t registry.example.org/switchback:0.1.0 --push .
#   make image
#   buildah bud --platform linux/arm64 --build-arg BUILDPLATFORM=linux/amd64 -t localhost/switchback:0.1.0 .
# The base needs Python 3.11 or newer as python3, with venv, and CA certificates. For another base: --build-arg BASE=...,
# and if it has one architecture alone, --build-arg BUILD_BASE=... with the same one for the machine that builds.
# For another package index than that of the lock file: --build-arg PIP_INDEX_URL=https://index.example.org/simple
# Python 3.13: newer ones are as fast and take 5 MB more for each process (docs/pages/speed.md has the table).
ARG BASE=docker.io/library/python:3.13-slim@sha256:9d2e5553305c7c7b0097999bb17187c69b921ccd6bc9d40e4bb5ebe652c00285
ARG BUILD_BASE=${BASE}

FROM --platform=$BUILDPLATFORM ${BUILD_BASE} AS build
# pip's own variable; unset unless it is given. Whatever the index, every package must have the hash of the lock file.
ARG PIP_INDEX_URL
# Set by the builder, if it builds for a platform by name.
ARG TARGETARCH
WORKDIR /src
# Install uv with the version and the hashes from the lock file.
COPY uv.lock ./
RUN python3 -c 'import tomllib; uv, = (one for one in tomllib.load(open("uv.lock", "rb"))["package"] if one["name"] == "uv"); print("uv==" + uv["version"], *("--hash=" + wheel["hash"] for wheel in uv["wheels"]))' > /tmp/uv.txt \
 && python3 -m venv /opt/uv \
 && /opt/uv/bin/pip install --no-cache-dir --disable-pip-version-check --only-binary :all: --require-hashes -r /tmp/uv.txt
ENV UV_PYTHON=python3 \
    UV_PYTHON_DOWNLOADS=never \
    UV_NO_CACHE=1 \
    UV_LINK_MODE=copy \
    SOURCE_DATE_EPOCH=0
# Dependencies first, because they change less often than the programs. Without the kubernetes package and what it alone
# needs, three quarters of all: it runs credential plugins, and a pod needs none. Without the packages' own tests and commands, and
# what only a shell in the environment needs.
COPY pyproject.toml ./
RUN case "${TARGETARCH:=$(dpkg --print-architecture)}" in amd64) machine=x86_64 ;; arm64) machine=aarch64 ;; *) echo "no wheels are locked for $TARGETARCH" >&2; exit 1 ;; esac \
 && /opt/uv/bin/uv export --quiet --frozen --no-dev --no-emit-project --prune kubernetes --output-file /tmp/app.txt \
 && /opt/uv/bin/uv venv --no-project /app \
 && /opt/uv/bin/uv pip install --python /app --python-platform "$machine-unknown-linux-gnu" --no-build --require-hashes ${PIP_INDEX_URL:+--default-index "$PIP_INDEX_URL"} -r /tmp/app.txt \
 && find /app/lib -type d \( -name test -o -name tests -o -name _tests \) -prune -exec rm -r {} + \
 && find /app/bin -type f -delete \
 && rm -f /app/.lock /app/.gitignore /app/CACHEDIR.TAG /app/lib/python3*/site-packages/_virtualenv.* \
 && sed -i -E '/^([^,]*\/)?_?tests?\/|^(\.\.\/){3}bin\//d' /app/lib/python3*/site-packages/*.dist-info/RECORD
COPY README.md LICENSE ./
COPY sidecar ./sidecar
COPY dnsproxy ./dnsproxy
COPY proxy ./proxy
COPY wholeip ./wholeip
# The commit, where the sources are not those of `git archive`, which has written it already.
ARG REVISION=unknown
# Remove uv's own records, which contain timestamps and a path of this stage. Compile byte code that is validated by the
# source's hash, not its time: the root is read-only, and equal sources give equal layers.
RUN sed -i "s|[$]Format:%H[$]|$REVISION|" sidecar/values/build.py \
 && /opt/uv/bin/uv build --quiet --wheel --offline --out-dir /tmp/wheel \
 && /opt/uv/bin/uv pip install --python /app --offline --no-deps /tmp/wheel/*.whl \
 && cd /app/lib/python3*/site-packages \
 && rm -f /app/.lock /app/bin/kubectl* switchback_dns-*.dist-info/uv_cache.json switchback_dns-*.dist-info/direct_url.json \
 && sed -i -E '/\/(uv_cache|direct_url)\.json,|\/bin\/kubectl/d' switchback_dns-*.dist-info/RECORD \
 && /app/bin/python -m compileall -q --invalidation-mode unchecked-hash /app/lib

# The byte code of the standard library. The official images have none and the root is read-only, so each start would compile
# what it imports: as much processor time again, and 3 MB. Debian's own python3 has its byte code. It is validated by the source's hash,
# because the two bases may differ in a patch.
FROM --platform=$BUILDPLATFORM ${BUILD_BASE} AS library
RUN library=$(python3 -B -c 'import sysconfig; print(sysconfig.get_path("stdlib"))') \
 && mkdir /library && cd / \
 && if [ -z "$(find "$library/__pycache__" -name 'os.*.pyc' 2>/dev/null)" ]; then \
      python3 -B -m compileall -q --invalidation-mode checked-hash -x '/(test|tests|idlelib|tkinter|turtledemo|ensurepip|lib2to3|pydoc_data|(site|dist)-packages)/' "$library" \
      && find ".$library" -name '*.pyc' -not -path '*-packages/*' -exec cp --parents --target-directory /library {} +; \
    fi

FROM --platform=$TARGETPLATFORM ${BASE} AS programs
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="switchback" \
      org.opencontainers.image.description="Lets pods reach their own cluster's public hostnames behind a PROXY protocol load balancer" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=library /library /
COPY --from=build /app /app
ENV PATH=/app/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1
# A number, because the kubelet cannot check runAsNonRoot for a user name.
USER 65532:65532
CMD ["dnsproxy", "--help"]

# nft for the target: its package and those that it needs and the base lacks, unpacked, as nothing can be configured. They
# come from the base's package sources, so two builds may differ. status.d is where scanners look for unpacked packages.
FROM --platform=$BUILDPLATFORM ${BUILD_BASE} AS nft
ARG TARGETARCH
WORKDIR /tmp/packages
RUN dpkg --add-architecture "${TARGETARCH:=$(dpkg --print-architecture)}" \
 && apt-get update \
 && apt-get install --simulate --no-install-recommends nftables > /tmp/plan \
 && apt-get download $(sed -n "s/^Inst \([^ ]*\) .*/\1:$TARGETARCH/p" /tmp/plan) \
 && mkdir -p /tmp/root/usr/lib /tmp/root/usr/sbin /nft/var/lib/dpkg/status.d \
 && ln -s usr/lib usr/sbin /tmp/root \
 && for package in *.deb; do dpkg-deb --fsys-tarfile "$package" | tar -x -C /tmp/root --keep-directory-symlink && dpkg-deb --field "$package" > "/nft/var/lib/dpkg/status.d/${package%%_*}" || exit 1; done \
 && cd /tmp/root && cp -a --parents usr/sbin/nft usr/lib/*-linux-gnu usr/share/doc/*/copyright /nft

# --target with-nftables: adds nft, which wholeip runs.
FROM programs AS with-nftables
COPY --from=nft /nft /
# Debian installs nft in /usr/sbin.
ENV PATH=/app/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin

FROM programs
