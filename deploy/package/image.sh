#!/bin/sh
# Makes an OCI image without a container engine: image.sh ROOT ARCHIVE LAYOUT TAG. ROOT is the tree of a Debian with
# ca-certificates and tzdata, ARCHIVE one of deploy/release.sh. The image is that of deploy/Dockerfile.
set -eu
root=$1 archive=$2 layout=$3 tag=$4

tar -xzf "$archive" -C "$root/usr/local/bin" --strip-components=1 --wildcards '*/pudu'
chown root:root "$root/usr/local/bin/pudu"
echo 'pudu:x:10001:10001::/var/lib/pudu:/usr/sbin/nologin' >>"$root/etc/passwd"
echo 'pudu:x:10001:' >>"$root/etc/group"
install -d -o 10001 -g 10001 -m 0700 "$root/var/lib/pudu"
install -d "$root/etc/pudu"

umoci init --layout "$layout"
umoci new --image "$layout:$tag"
umoci insert --image "$layout:$tag" "$root" /
umoci config --image "$layout:$tag" \
    --config.user 10001:10001 --config.workingdir /etc/pudu --config.entrypoint pudu --config.volume /var/lib/pudu \
    --config.exposedports 8001 --config.stopsignal SIGTERM \
    --config.env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    --config.env PUDU_HOME=/var/lib/pudu --config.env HOME=/var/lib/pudu --config.env LANG=C.UTF-8 \
    --config.env GATEWAY_HOST=0.0.0.0 --config.env GATEWAY_PORT=8001
umoci gc --layout "$layout" >/dev/null
