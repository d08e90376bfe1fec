# drachtio-server's place is taken by the embedded SIP server, with the same command line.
ARG VERSION
FROM trunkline:${VERSION}
USER root
COPY drachtio /usr/local/bin/drachtio
ENTRYPOINT []
HEALTHCHECK NONE
STOPSIGNAL SIGTERM
