# shellcheck shell=bash
# The stage `check` of deploy/release.sh, which reads this file: installs each artifact of this machine's target somewhere
# clean, and asks it for its version and a first answer.

# shellcheck disable=SC2154 # From deploy/release.sh: out, scratch, base, version, target.
# Runs a program like a user without configuration. The built-in model needs no network.
answers() { # COMMAND...
    local home said
    home=$(mktemp -d "$scratch/home.XXXXXX")
    said=$(env -i PATH="$plain" HOME=/root TMPDIR=/tmp "${wrap[@]}" "$@" --version)
    [ "$said" = "pudu $version" ] || fail "$* is not pudu $version: $said"
    said=$(echo "a first question" |
        env -i PATH="$plain" HOME="$home" PUDU_HOME="${inner_home:-$home/pudu}" "${wrap[@]}" "$@" chat) ||
        fail "$* does not answer"
    grep -q "a first question" <<<"$said" || fail "$* answers something else: $said"
    env -i PATH="$plain" HOME="$home" PUDU_HOME="${inner_home:-$home/pudu}" "${wrap[@]}" "$@" config check \
        >/dev/null || fail "$* config check fails"
    echo "answers: $*"
}
wrap=()
plain=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

root() { # NAME
    mkdir "$scratch/$1"
    tar --directory "$scratch/$1" --extract --file "$base"
    # A pseudo file system of its own, in namespaces that end with the command.
    wrap=(unshare --mount --pid --fork --mount-proc="$scratch/$1/proc" chroot "$scratch/$1" env)
    inner_home=/tmp/pudu-home
    rm -rf "${scratch:?}/$1$inner_home"
}

check_archive() {
    step "the archive"
    tar --directory "$scratch" --extract --file "$out/pudu-$version-$target.tar.gz"
    wrap=() inner_home=
    answers "$scratch/pudu-$version-$target/pudu"
    local file
    for file in LICENSE README.md config.example.yaml pudu.service pudu.1 completions/{pudu.bash,pudu.fish,_pudu}; do
        [ -s "$scratch/pudu-$version-$target/$file" ] || fail "the archive has no $file"
    done
}

check_deb() {
    step "the deb in a clean root"
    local deb root=$scratch/deb
    deb=$(cd "$out" && ls pudu_"$version"*_"$(dpkg --print-architecture)".deb)
    root deb
    cp "$out/$deb" "$root/"
    # As Ubuntu has it.
    mkdir -p "$root/etc/apparmor.d/abi"
    : >"$root/etc/apparmor.d/abi/4.0"
    chroot "$root" dpkg --install "/$deb" >"$scratch/dpkg.log" 2>&1 || { cat "$scratch/dpkg.log" >&2; fail "dpkg fails"; }
    [ -z "$(chroot "$root" dpkg --verify pudu)" ] || fail "the files of the deb are not those of its checksums"
    cmp "$root/etc/apparmor.d/pudu" deploy/package/pudu.apparmor || fail "the AppArmor profile is missing"
    [ "$(stat -c %a "$root/etc/pudu/pudu.env")" = 600 ] || fail "pudu.env is readable for others"
    answers /usr/bin/pudu
    ! has systemd-analyze || verify_unit "$root"
    chroot "$root" dpkg --purge pudu >/dev/null
    for file in /usr/bin/pudu /etc/apparmor.d/pudu /etc/pudu/pudu.env; do
        [ ! -e "$root$file" ] || fail "$file stays after a purge"
    done
    # An AppArmor that cannot read the profile.
    rm "$root/etc/apparmor.d/abi/4.0"
    chroot "$root" dpkg --install "/$deb" >/dev/null 2>&1
    [ ! -e "$root/etc/apparmor.d/pudu" ] || fail "an old AppArmor gets a profile that it cannot read"
    # Only an AppArmor of version 4 can read it.
    if [ -e /etc/apparmor.d/abi/4.0 ] && has apparmor_parser; then
        apparmor_parser --skip-kernel-load --skip-cache deploy/package/pudu.apparmor
    fi
}

# Units that the root does not have are not the unit's fault.
verify_unit() { # ROOT
    local found
    found=$(systemd-analyze verify --root="$1" pudu.service 2>&1 | grep -F pudu.service | grep -v 'Unit .* not found' || true)
    [ -z "$found" ] || fail "systemd-analyze: $found"
}

check_rpm() {
    step "the rpm in a clean root"
    need rpm "apt-get install rpm"
    local rpm root=$scratch/rpm
    rpm=$(cd "$out" && ls pudu-"$version"-*."${target%%-*}".rpm)
    root rpm
    # The root has no packages that rpm knows of.
    rpm --root "$root" --install --nodeps "$out/$rpm"
    rpm --root "$root" --verify --nodeps pudu || fail "the files of the rpm are not those of its checksums"
    [ "$(stat -c %a "$root/etc/pudu/pudu.env")" = 600 ] || fail "pudu.env is readable for others"
    answers /usr/bin/pudu
    ! has systemd-analyze || verify_unit "$root"
    rpm --root "$root" --erase pudu
    [ ! -e "$root/usr/bin/pudu" ] || fail "/usr/bin/pudu stays after an erase"
}

check_image() {
    step "the image"
    mkdir "$scratch/image-layout"
    tar --directory "$scratch/image-layout" --extract --file "$out/pudu-$version-$target.oci.tar"
    umoci unpack --image "$scratch/image-layout:$version" "$scratch/bundle"
    # As the image's configuration says.
    python3 - "$scratch/bundle/config.json" <<'PYTHON'
import json, sys
process = json.load(open(sys.argv[1]))["process"]
assert process["args"] == ["pudu"], process["args"]
assert (process["user"]["uid"], process["user"]["gid"]) == (10001, 10001), process["user"]
assert process["cwd"] == "/etc/pudu", process["cwd"]
assert "PUDU_HOME=/var/lib/pudu" in process["env"], process["env"]
PYTHON
    wrap=(unshare --mount --pid --fork --mount-proc="$scratch/bundle/rootfs/proc" chroot --userspec=10001:10001
        "$scratch/bundle/rootfs" env HOME=/var/lib/pudu)
    inner_home=/var/lib/pudu
    answers pudu
}

check_npm() {
    step "the npm packages"
    local project=$scratch/npm platform started
    mkdir "$project"
    echo '{"private": true}' >"$project/package.json"
    platform=$(cd "$out" && ls pudu-agent-pudu-linux-"$(node -p process.arch)-$version.tgz")
    (cd "$project" && npm install --silent --no-audit --no-fund --offline "$out/$platform" "$out/pudu-$version.tgz") ||
        fail "npm cannot install the packages"
    [ "$(cd "$project" && npx --offline pudu --version)" = "pudu $version" ] || fail "npx pudu is not pudu $version"
    wrap=() inner_home=
    answers "$(command -v node)" "$project/node_modules/.bin/pudu"
    # A supervisor ends the daemon by the launcher.
    PUDU_HOME=$project/home "$project/node_modules/.bin/pudu" --bind 127.0.0.1:0 >"$project/log" 2>&1 &
    started=$!
    servers+=("$started")
    wait_for "$project/log" "127.0.0.1:"
    kill "$started"
    wait "$started" || true
    ! pgrep -f "^$project/node_modules/" >/dev/null || fail "the daemon outlives its launcher"
    rm -rf "$project/node_modules/@pudu-agent"
    if "$project/node_modules/.bin/pudu" --version >/dev/null 2>"$project/log"; then fail "the launcher runs nothing"; fi
    grep -q "is not installed" "$project/log" || fail "the launcher does not name the missing package"
}

wait_for() { # FILE WORDS
    local tries=0
    until grep -q "$2" "$1"; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || { cat "$1" >&2; fail "$2 does not appear in 30 s"; }
        sleep 0.1
    done
}

check_wheel() {
    step "the wheel"
    local wheel
    wheel=$(ls "$out"/pudu_agent-"$version"-py3-none-manylinux_*_"${target%%-*}".whl)
    python3 -m venv "$scratch/venv"
    "$scratch/venv/bin/pip" install --quiet --disable-pip-version-check --no-index "$wheel"
    wrap=() inner_home=
    answers "$scratch/venv/bin/pudu"
}

check_installer() {
    step "the installer"
    need minisign "apt-get install minisign"
    local site=$scratch/site folder prefix=$scratch/prefix key port without
    folder=$site/v$version
    mkdir -p "$folder"
    cp "$out/pudu-$version-$target.tar.gz" "$out/SHA256SUMS" "$folder/"
    # The release's own key signs nothing here.
    minisign -G -W -p "$scratch/key.pub" -s "$scratch/key" >/dev/null
    key=$(tail -n 1 "$scratch/key.pub")
    sign "$scratch/key" "$folder"
    python3 -u -m http.server --bind 127.0.0.1 --directory "$site" 0 >"$scratch/http.log" 2>&1 &
    servers+=("$!")
    wait_for "$scratch/http.log" "port [0-9]"
    port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$scratch/http.log")
    export PUDU_BASE_URL=http://127.0.0.1:$port PUDU_KEY=$key
    installs() { sh "$out/install.sh" --prefix "$prefix" >"$scratch/install.log" 2>&1; }
    refuses() { # WORDS
        if installs; then fail "the installer accepts it: $1"; fi
        grep -q "$1" "$scratch/install.log" || { cat "$scratch/install.log" >&2; fail "the installer does not report: $1"; }
    }

    installs || { cat "$scratch/install.log" >&2; fail "the installer fails"; }
    wrap=() inner_home=
    answers "$prefix/bin/pudu"
    printf '#!/bin/sh\necho the former one\n' >"$prefix/bin/pudu"
    # By OpenSSL, as on a machine without minisign.
    without=$scratch/without
    mkdir "$without"
    for tool in sh curl openssl uname getconf mktemp rm sed grep head tail od cp mv ln mkdir chmod tar gzip sha256sum; do
        ln -s "$(command -v "$tool")" "$without/$tool"
    done
    PATH=$without installs || { cat "$scratch/install.log" >&2; fail "the installer fails with OpenSSL"; }
    [ "$("$prefix/bin/pudu" --version)" = "pudu $version" ] || fail "the installer does not replace the former version"
    sh "$out/install.sh" --prefix "$prefix" --rollback >/dev/null
    [ "$("$prefix/bin/pudu")" = "the former one" ] || fail "the rollback does not bring the former version"
    sh "$out/install.sh" --prefix "$prefix" --rollback >/dev/null

    PUDU_VERSION=0.0.0 refuses "cannot download"
    PUDU_KEY="" refuses "no public key"
    minisign -G -W -p "$scratch/other.pub" -s "$scratch/other" >/dev/null
    PUDU_KEY=$(tail -n 1 "$scratch/other.pub") refuses "signature of SHA256SUMS is wrong"
    PUDU_KEY=$(tail -n 1 "$scratch/other.pub") PATH=$without refuses "signature of SHA256SUMS is wrong"
    rm "$without/openssl"
    PATH=$without refuses "cannot verify the signature"
    echo >>"$folder/pudu-$version-$target.tar.gz"
    refuses "checksum of .* is wrong"
    echo "0  another" >>"$folder/SHA256SUMS"
    refuses "signature of SHA256SUMS is wrong"
    [ "$("$prefix/bin/pudu" --version)" = "pudu $version" ] || fail "a refused installation changes the program"
    unset PUDU_BASE_URL PUDU_KEY
    echo "installs, rolls back, and refuses a wrong version, key, signature and checksum"
}

check_sources() {
    step "sources, SBOM and checksums"
    (cd "$out" && sha256sum --quiet --check SHA256SUMS)
    mkdir "$scratch/vendored" "$scratch/cargo-home"
    tar --directory "$scratch/vendored" --extract --file "$out/pudu-$version-vendored.tar.gz"
    # With no registry and no cache.
    (cd "$scratch/vendored/pudu-$version" &&
        CARGO_HOME=$scratch/cargo-home cargo metadata --format-version 1 --offline --locked >/dev/null) ||
        fail "the vendored sources are incomplete"
    python3 - "$out/pudu-$version.cdx.json" <(cargo tree --locked --package pudu --edges normal --prefix none) <<'PYTHON'
import json, sys
listed = {(part["name"], part["version"]) for part in json.load(open(sys.argv[1]))["components"]}
used = {tuple(line.split()[:2]) for line in open(sys.argv[2])}
missing = {(name, version[1:]) for name, version in used if name != "pudu"} - listed
if missing:
    sys.exit(f"deploy/release.sh: the SBOM lacks {sorted(missing)[:5]} and in all {len(missing)} packages")
print(f"the SBOM lists {len(listed)} packages")
PYTHON
    ! has ruby || ruby -c "$out/pudu.rb" >/dev/null
}

check() {
    as_root check
    need shellcheck "apt-get install shellcheck"
    step "shellcheck"
    shellcheck --external-sources deploy/*.sh deploy/package/*.sh deploy/package/{debian,redhat}/*
    check_archive
    base
    check_deb
    check_rpm
    check_image
    check_npm
    check_wheel
    check_installer
    check_sources
    step "pudu $version for $target holds"
}
