# shellcheck shell=bash
# Debian packages: installing what is missing, and fetching sources.

is_debian() {
    have dpkg-query && have apt-get
}

# missing_packages <package...>: prints those that are not installed.
missing_packages() {
    local installed package
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" \
        2>/dev/null | sed -n 's/^installed //p') || true
    for package in "$@"; do
        grep -qxF "$package" <<<"$installed" || echo "$package"
    done
}

# install_packages <package...>: needs no network when all are there.
install_packages() {
    if ! is_debian; then
        warn "no apt here; expecting the equivalents of: $*"
        return
    fi
    local missing
    mapfile -t missing < <(missing_packages "$@")
    if ((${#missing[@]} == 0)); then
        return
    fi
    say "installing Debian packages: ${missing[*]}"
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q
        -o DPkg::Lock::Timeout=600)
    # One broken third-party source should not stop the rest.
    as_root "${apt[@]}" update </dev/null ||
        warn "apt-get update failed; going on with the lists that are there"
    as_root "${apt[@]}" install -y --no-install-recommends "${missing[@]}" \
        </dev/null ||
        die "could not install packages. As root: apt-get install ${missing[*]}"
}

# Turns the machine's binary package sources into source package sources.
# Only those of the Debian release itself: others may have no sources.
write_source_lists() {
    local folder=$1 codename file
    codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
    mkdir -p "$folder"
    for file in /etc/apt/sources.list.d/*.sources; do
        [[ -e $file ]] || continue
        awk -v RS= -v ORS='\n\n' -v suite="$codename" '
            $0 ~ "(^|\n)Suites:[ \t]*" suite "(-updates|-security)?([ \t\n]|$)" {
                gsub(/(^|\n)Types:[^\n]*/, "\nTypes: deb-src"); print
            }' "$file" >"$folder/$(basename "$file")"
    done
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [[ -e $file ]] || continue
        sed -nE "s/^deb(-src)?[ \t]+(.*[ \t]$codename(-updates|-security)?[ \t].*)/deb-src \2/p" \
            "$file" >"$folder/$(basename "$file")"
    done
}

# fetch_debian_source <package> <folder>: unpacks the newest source package of
# this Debian release into <folder>, which exists afterwards only if complete.
fetch_debian_source() {
    local package=$1 folder=$2 work=$2.work
    [[ -d $folder ]] && return
    is_debian || die "fetching $package's source needs apt"
    install_packages dpkg-dev xz-utils
    say "fetching the source of Debian's package $package"
    rm -rf "$work"
    mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial"
    write_source_lists "$work/sources"
    local apt=(apt-get -q
        -o Dir::Etc::sourcelist=/dev/null
        -o Dir::Etc::sourceparts="$work/sources"
        -o Dir::State::lists="$work/state/lists"
        -o Dir::Cache="$work/cache"
        -o APT::Sandbox::User=root)
    (
        # Chained, as `set -e` does not reach into a list with ||.
        cd "$work" &&
            "${apt[@]}" update &&
            "${apt[@]}" source --download-only "$package" &&
            dpkg-source --no-check -x ./*.dsc unpacked
    ) </dev/null || die "could not fetch the source of $package"
    mv "$work/unpacked" "$folder"
    rm -rf "$work"
}
