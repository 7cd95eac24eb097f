# Prints what this machine's package managers are set up to use: their configuration
# files, and what the tools themselves say. Each line of a content begins with `>`.
# The user's own files are read one by one, and hidden from the tools, so that what
# commands can write counts only where the policy says so.
cd / || exit 1

file() {
    [ -f "$1" ] && [ -r "$1" ] || return 0
    printf '=file %s\n' "$1"
    sed 's/^/>/' "$1"
    echo
}

# tool NAME QUESTION COMMAND...
tool() {
    command -v "$1" >/dev/null 2>&1 || return 0
    printf '=tool %s %s\n' "$1" "$2"
    shift 2
    "$@" 2>/dev/null </dev/null | sed 's/^/>/'
    echo
}

for name in HOME PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_FIND_LINKS UV_INDEX_URL UV_DEFAULT_INDEX; do
    eval "value=\${$name-}"
    [ -z "$value" ] || printf '=env %s\n>%s\n' "$name" "$value"
done

tool npm registry env npm_config_userconfig=/dev/null npm config get registry
tool npm config env npm_config_userconfig=/dev/null npm config list
tool pip version pip --version
tool pip3 version pip3 --version
file /etc/pip.conf
file /etc/xdg/pip/pip.conf
tool cargo version cargo --version
tool apt-config acquire apt-config dump Acquire
tool go proxy env GOENV=off go env GOPROXY
tool go sums env GOENV=off go env GOSUMDB
for path in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    file "$path"
done
file "${PREFIX:-/usr}/etc/npmrc"
file /etc/npmrc
if [ -n "${HOME-}" ]; then
    file "$HOME/.npmrc"
    file "${XDG_CONFIG_HOME:-$HOME/.config}/pip/pip.conf"
    file "$HOME/.pip/pip.conf"
    file "${CARGO_HOME:-$HOME/.cargo}/config.toml"
    file "${CARGO_HOME:-$HOME/.cargo}/config"
    file "${XDG_CONFIG_HOME:-$HOME/.config}/go/env"
fi
