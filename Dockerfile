# The query server in a container: CPU only, not root, and it runs with a read-only root.
#
#   docker build -t helios .
#   docker run --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges -p 127.0.0.1:8080:8080 \
#     -v "$PWD/demo-index:/index:ro" -v "$PWD/keys.json:/keys.json:ro" helios
#
# The server only listens outside of loopback with keys: `helios serve keys add NAME --keys keys.json` makes one, in a
# file that the user 10001 of the container owns and nobody else may read. Every address by which clients call it has to
# be named: add `--allow-host NAME` after the image's name, with the rest of the command.
FROM python:3.11-slim AS build
RUN python -m venv /helios
COPY requirements-dev.lock /tmp/pins
# torch from its own index is built for processors alone; everything else is held to what is tested.
RUN /helios/bin/pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cpu "$(grep '^torch==' /tmp/pins)"
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY helios helios
COPY indexing indexing
COPY training training
COPY serving serving
RUN /helios/bin/pip install --no-cache-dir --constraint /tmp/pins '.[documents,llm,serve,sources]'

FROM python:3.11-slim
LABEL org.opencontainers.image.title="HELIOS" org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin helios
COPY --from=build /helios /helios
# What is compiled or cached goes to /tmp, the only folder that has to be writable.
ENV PATH=/helios/bin:$PATH PYTHONDONTWRITEBYTECODE=1 XDG_CACHE_HOME=/tmp/cache NUMBA_CACHE_DIR=/tmp/numba HOME=/tmp
USER 10001
WORKDIR /tmp
EXPOSE 8080
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 CMD \
    ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/readyz', timeout=4)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["helios", "serve"]
CMD ["--index", "/index", "--host", "0.0.0.0", "--keys", "/keys.json"]
