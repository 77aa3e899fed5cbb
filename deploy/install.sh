#!/bin/sh
# Installs pudu for one user: downloads the archive of this machine, verifies the signature of the checksums and the
# checksum of the archive, and puts the program into PREFIX/bin. Needs no root.
#
#     install.sh [--prefix DIR]             default: ~/.local
#     install.sh [--prefix DIR] --rollback  exchange the program with the one before the last installation
#
# PUDU_VERSION   version to install; default: the version that this script was released with
# PUDU_BASE_URL  address of the folder with the releases' folders, v0.1.0 and so on
# PUDU_KEY       minisign's public key; default: the key that this script was released with
set -eu

version=${PUDU_VERSION:-@VERSION@}
url=${PUDU_BASE_URL:-@URL@}
key=${PUDU_KEY:-@KEY@}
prefix=${HOME:-}/.local
rollback=

say() { printf 'pudu: %s\n' "$*"; }
fail() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

while [ $# -gt 0 ]; do
    case $1 in
    --prefix)
        [ $# -gt 1 ] || fail "--prefix needs a folder"
        prefix=$2
        shift
        ;;
    --rollback) rollback=1 ;;
    *) fail "unknown argument $1" ;;
    esac
    shift
done
case $prefix in
/.local) fail "HOME is not set: use --prefix DIR" ;;
/*) ;;
*) prefix=$PWD/$prefix ;;
esac
program=$prefix/bin/pudu

# One rename each, so that there is a program at every moment.
if [ -n "$rollback" ]; then
    [ -x "$program.previous" ] || fail "there is no former version: $program.previous is missing"
    ln -f "$program" "$program.new"
    mv -f "$program.previous" "$program"
    mv -f "$program.new" "$program.previous"
    say "$("$program" --version) is back in $program"
    exit
fi

case $version$url$key in *@*@*) fail "this copy is of the sources: take install.sh from a release" ;; esac
[ -n "$key" ] || fail "this copy has no public key: set PUDU_KEY"

# glibc from 2.28 on, otherwise the static program.
libc() {
    glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed -n 's/^glibc 2\.\([0-9]*\).*/\1/p')
    if [ "${glibc:-0}" -ge 28 ]; then echo gnu; else echo musl; fi
}

case $(uname -m) in
x86_64 | amd64) cpu=x86_64 ;;
aarch64 | arm64) cpu=aarch64 ;;
*) fail "there is no pudu for the processor $(uname -m)" ;;
esac
case $(uname -s) in
Linux) target=$cpu-unknown-linux-$(libc) ;;
Darwin) target=$cpu-apple-darwin ;;
*) fail "there is no pudu for $(uname -s)" ;;
esac
name=pudu-$version-$target

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM HUP

fetch() {
    if has curl; then
        curl --fail --silent --show-error --location --output "$folder/$1" "$url/v$version/$1"
    elif has wget; then
        wget -q -O "$folder/$1" "$url/v$version/$1"
    else
        fail "curl and wget are missing"
    fi || fail "cannot download $url/v$version/$1"
}

# minisign signs the BLAKE2b digest of a file with Ed25519. OpenSSL from 3.0 on verifies that, too.
by_openssl() {
    printf '%s' "$key" | openssl base64 -d -A >"$folder/key"
    sed -n 2p "$folder/SHA256SUMS.minisig" | openssl base64 -d -A >"$folder/signature"
    # The algorithm, and the id of the key that both name.
    [ "$(head -c 2 "$folder/signature")" = ED ] || return 1
    [ "$(head -c 10 "$folder/signature" | tail -c 8 | od -A n -t x1)" = \
        "$(head -c 10 "$folder/key" | tail -c 8 | od -A n -t x1)" ] || return 1
    # The key as X.509 has it.
    { printf '\060\052\060\005\006\003\053\145\160\003\041\000' && tail -c 32 "$folder/key"; } >"$folder/key.der"
    tail -c 64 "$folder/signature" >"$folder/signature.raw"
    openssl dgst -blake2b512 -binary "$folder/SHA256SUMS" >"$folder/digest"
    openssl pkeyutl -verify -pubin -inkey "$folder/key.der" -keyform DER -rawin -in "$folder/digest" \
        -sigfile "$folder/signature.raw" >/dev/null 2>&1
}

fetch SHA256SUMS
fetch SHA256SUMS.minisig
if has minisign; then
    minisign -V -q -P "$key" -m "$folder/SHA256SUMS" || fail "the signature of SHA256SUMS is wrong"
elif openssl version 2>/dev/null | grep -q '^OpenSSL [3-9]'; then
    by_openssl || fail "the signature of SHA256SUMS is wrong"
else
    fail "cannot verify the signature: install minisign, or OpenSSL 3"
fi

fetch "$name.tar.gz"
wanted=$(sed -n "s/^\([0-9a-f]*\)  $name\.tar\.gz\$/\1/p" "$folder/SHA256SUMS")
[ -n "$wanted" ] || fail "SHA256SUMS does not have $name.tar.gz"
if has sha256sum; then found=$(sha256sum "$folder/$name.tar.gz"); else found=$(shasum -a 256 "$folder/$name.tar.gz"); fi
[ "${found%% *}" = "$wanted" ] || fail "the checksum of $name.tar.gz is wrong"

tar -xzf "$folder/$name.tar.gz" -C "$folder"
found=$("$folder/$name/pudu" --version) || fail "the program does not run on this machine"
[ "$found" = "pudu $version" ] || fail "the archive has $found instead of pudu $version"

put() { # FILE FOLDER NAME MODE
    mkdir -p "$prefix/$2"
    cp "$folder/$name/$1" "$prefix/$2/$3.new"
    chmod "$4" "$prefix/$2/$3.new"
    mv -f "$prefix/$2/$3.new" "$prefix/$2/$3"
}
put pudu.1 share/man/man1 pudu.1 0644
put completions/pudu.bash share/bash-completion/completions pudu 0644
put completions/pudu.fish share/fish/vendor_completions.d pudu.fish 0644
put completions/_pudu share/zsh/site-functions _pudu 0644
put config.example.yaml share/pudu config.example.yaml 0644
[ ! -e "$program" ] || ln -f "$program" "$program.previous"
put pudu bin pudu 0755
say "pudu $version is installed in $program"
case :$PATH: in *":$prefix/bin:"*) ;; *) say "$prefix/bin is not in PATH" ;; esac
