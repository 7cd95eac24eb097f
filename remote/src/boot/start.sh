# Starts the helper on the VM, or says why it can't. Read by /bin/sh.
#
# Before this text come, quoted by the client:
#   _bx_no     the mark: a random word that starts each of our own lines
#   _bx_names  the helpers that this client knows, as MACHINE:FILE, one a word
#   _bx_words  the helper's arguments
#   _bx_skip   folders whose helper is no good, as :DIR:DIR:
#   _bx_dir    with the next two: a helper that was just sent lies in this folder
#   _bx_part   under this name,
#   _bx_file   and belongs under this one
#
# What it says on stdout:
#   MARK X DIR       the helper of this folder is started; its own bytes follow
#   MARK M SYSTEM    it isn't there; the kind of machine, as `Linux x86_64`
#   MARK D DIR       it could lie in this folder
#   MARK N DIR       it can't lie in this one
#   MARK F TEXT      what was sent can't be put in its place
#   MARK E           that was all

_bx_say() { printf '%s%s\n' "$_bx_no" "$1"; }

# Calls $1 with each folder that may hold a helper, the best one first, and with
# `own` or, where other users could have made it, `shared`.
_bx_each() {
	_bx_who=${LOGNAME:-${USER:-user}}
	case $_bx_who in */*) _bx_who=user ;; esac
	case ${XDG_CACHE_HOME:-} in /*) "$1" "$XDG_CACHE_HOME/boxery" own ;; esac
	case ${HOME:-} in
	/*)
		"$1" "${HOME%/}/.cache/boxery" own
		"$1" "${HOME%/}/.boxery" own
		;;
	esac
	case ${XDG_RUNTIME_DIR:-} in /*) "$1" "$XDG_RUNTIME_DIR/boxery" own ;; esac
	for _bx_top in /var/tmp /tmp /dev/shm; do
		"$1" "$_bx_top/boxery-$_bx_who" shared
	done
}

# A folder in a place that everybody may write must be a real one and ours.
_bx_ours() {
	[ -d "$1" ] || return 1
	[ "$2" = own ] && return 0
	[ ! -h "$1" ] && [ -O "$1" ] && chmod 700 "$1"
}

_bx_go() {
	_bx_say "X $1"
	exec 2>&9 9>&-
	exec "$1/$2" $_bx_words
}

_bx_find() {
	case $_bx_skip in *":$1:"*) return 0 ;; esac
	_bx_ours "$1" "$2" || return 0
	for _bx_f in $_bx_names; do
		if [ -n "$_bx_machine" ] && [ "${_bx_f%%:*}" != "$_bx_machine" ]; then continue; fi
		[ -x "$1/${_bx_f#*:}" ] && _bx_go "$1" "${_bx_f#*:}"
	done
	return 0
}

# Whether a file can be made there, and started.
_bx_fits() {
	_bx_try=$1/.try-$$
	if mkdir -p "$1" && chmod 700 "$1" && _bx_ours "$1" "$2" &&
		printf '#!/bin/sh\nexit 0\n' >"$_bx_try" && chmod 700 "$_bx_try" && "$_bx_try"; then
		_bx_say "D $1"
	else
		_bx_say "N $1"
	fi
	rm -f "$_bx_try"
	return 0
}

_bx_start() {
	unset IFS
	umask 077
	if [ -n "$_bx_part" ]; then
		if chmod 700 "$_bx_dir/$_bx_part" && mv -f "$_bx_dir/$_bx_part" "$_bx_dir/$_bx_file"; then
			_bx_go "$_bx_dir" "$_bx_file"
		fi
		_bx_say "F $_bx_dir"
		exit
	fi
	_bx_system=$(uname -s) || _bx_system=
	_bx_machine=$(uname -m) || read -r _bx_machine </proc/sys/kernel/arch || _bx_machine=
	case $_bx_machine in amd64) _bx_machine=x86_64 ;; arm64) _bx_machine=aarch64 ;; esac
	_bx_each _bx_find
	_bx_say "M ${_bx_system:-Linux} ${_bx_machine:-of an unknown kind}"
	_bx_each _bx_fits
	_bx_say E
}

exec 9>&2 2>/dev/null
_bx_start
