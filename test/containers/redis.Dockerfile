# Debian's Redis under the name of the image that the layouts use.
FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends redis-server && rm -rf /var/lib/apt/lists/* \
  && mkdir -p /data && chown redis:redis /data
VOLUME /data
WORKDIR /data
CMD ["redis-server"]
