# labelkin as a service, without torch: docs/service.md#containers
#
#     docker build -t labelkin .
#     docker run -p 127.0.0.1:8080:8080 -v collections:/data labelkin
#
# Any other verb runs in the same way: docker run … labelkin info /data/mycollection

# Both stages need the same Python at the same place.
ARG BASE=python:3.12-slim

FROM ${BASE} AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
# Wheels of labelkin and of what it needs, installed into a folder of their own. Nothing else of
# this stage is in the image.
RUN pip wheel --no-cache-dir --constraint constraints.txt --wheel-dir /wheels '.[serve,rerank]' \
    && python -m venv /opt/labelkin \
    && /opt/labelkin/bin/pip install --no-cache-dir --no-index --find-links /wheels 'labelkin[serve,rerank]' \
    && /opt/labelkin/bin/pip uninstall --yes pip

FROM ${BASE}
# LightGBM needs the OpenMP runtime; Debian keeps only its latest version, so it has no pin. The ids
# are numbers, so that orchestrators see that it is not root.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 labelkin \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin labelkin \
    && install --directory --owner 10001 --group 10001 /data
COPY --from=build /opt/labelkin /opt/labelkin

# Nothing is written outside /data and /tmp: the root file system may be read-only.
ENV PATH=/opt/labelkin/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s --retries=3 \
    CMD ["python", "-c", "import http.client, sys; c = http.client.HTTPConnection('127.0.0.1', 8080, timeout=4); c.request('GET', '/api/v1/ready'); sys.exit(c.getresponse().status != 200)"]
ENTRYPOINT ["labelkin"]
# All collections in /data. To serve one of them: serve /data/mycollection --host 0.0.0.0
CMD ["serve", "/data", "--host", "0.0.0.0", "--port", "8080"]
