# One run, on the VM. Read by /bin/sh: dash, bash, busybox, ksh and the like.
#
# Before this text come the variables of the run, quoted by the client:
#   _bx_no    the mark: a random word that starts each of our own lines
#   _bx_id    the run's own random word, in the command's environment
#   _bx_dir   the folder to run in, or nothing
#   _bx_in    1 when the command's stdin is relayed, else 0
# and the function _bx_env, which exports what travels from the laptop. After
# it come the command, as `set --`, and the call of _bx_main. None of the
# variables is exported, so the command sees BOXERY_RUN and no more.
#
# What the client sends from then on are frames, on the same stdin:
#   d N      N bytes follow for the command's stdin
#   e        end of the command's stdin
#   k        end the run
# End of file means that the client is gone, and ends the run too.
#
# What it gets are the command's bytes and, on stdout and stderr both:
#   MARK B   the command begins (everything before is noise of rc files)
#   MARK E N the command ended with status N
#   MARK H   a heartbeat, dropped by the client
# and on stderr only:
#   MARK F W it could not be started, for the reason W
#   MARK S N the tree was ended and N processes are left

_bx_say() { printf '%s%s\n' "$_bx_no" "$1"; }

# The number of this (sub)shell: $$ is the main shell's everywhere.
_bx_self() {
	read -r _bx_pid _bx_rest </proc/self/stat ||
		_bx_pid=$(exec sh -c 'echo $PPID')
} 2>/dev/null

# The command, in the foreground so that it gets no ignored SIGINT, in a
# subshell so that this one lives to tell its status.
_bx_work() {
	trap : TERM HUP INT
	exec 3>&9 8>&- 9>&-
	(
		trap - TERM HUP INT
		exec 2>&3 3>&-
		[ "$_bx_in" = 1 ] || exec </dev/null
		if [ -n "$_bx_dir" ]; then
			cd "$_bx_dir" 2>/dev/null || {
				if [ -d "$_bx_dir" ]; then _bx_say 'F denied'; else _bx_say 'F gone'; fi >&2
				exit 125
			}
		fi
		_bx_env
		BOXERY_RUN=$_bx_id
		export BOXERY_RUN
		# bash under sshd reads .bashrc again, with all its noise, unless it finds
		# itself inside another shell (shell.c, SSH_SOURCE_BASHRC); it is inside one.
		case ${SHLVL:-0} in
		0)
			SHLVL=1
			export SHLVL
			;;
		esac
		case $1 in
		bash | */bash)
			command -v "$1" >/dev/null 2>&1 || {
				_bx_say 'F bash' >&2
				exit 125
			} ;;
		esac
		_bx_say B
		_bx_say B >&2
		exec "$@"
	)
	_bx_status=$?
	_bx_say "E $_bx_status"
	_bx_say "E $_bx_status" >&3
}

# Everybody who belongs to the run: the main shell's children but for the
# watcher and its guard; whoever bears the run's mark in the environment it
# started with; whoever is in the main shell's session; and all their children.
# Sets _bx_pids; _bx_kids is what of it are the main shell's own children.
_bx_list() {
	_bx_pids= _bx_kids=
	if [ -r /proc/self/stat ]; then
		_bx_all=$(cat /proc/[0-9]*/stat 2>/dev/null |
			sed -n 's/^\([0-9]*\) (.*) [^ZX] \([0-9]*\) [0-9]* \([0-9]*\) .*/\1 \2 \3/p')
		if [ "$_bx_grep" = 1 ]; then
			_bx_marked=$(grep -lF "BOXERY_RUN=$_bx_id" /proc/[0-9]*/environ 2>/dev/null)
		else
			_bx_marked=
			for _bx_f in /proc/[0-9]*/environ; do
				tr '\0' '\n' <"$_bx_f" 2>/dev/null | grep -qF "BOXERY_RUN=$_bx_id" &&
					_bx_marked="$_bx_marked $_bx_f"
			done
		fi
		for _bx_f in $_bx_marked; do
			_bx_f=${_bx_f#/proc/}
			_bx_pids="$_bx_pids ${_bx_f%/environ}"
		done
	else
		_bx_all=$(ps -A -o pid= -o ppid= | sed 's/$/ 0/')
	fi
	_bx_more=1
	while [ "$_bx_more" = 1 ]; do
		_bx_more=0
		set -- $_bx_all
		while [ $# -ge 3 ]; do
			case " $$ $_bx_watcher $_bx_guard " in
			*" $1 "*) ;;
			*" $2 "*)
				if [ "$2" = $$ ]; then
					case " $_bx_kids " in
					*" $1 "*) ;;
					*)
						_bx_kids="$_bx_kids $1" _bx_pids="$_bx_pids $1"
						_bx_more=1
						;;
					esac
				fi
				;;
			*)
				case " $_bx_pids " in
				*" $1 "*) ;;
				*)
					case " $_bx_pids " in
					*" $2 "*) _bx_f=1 ;;
					*) if [ "$3" = $$ ]; then _bx_f=1; else _bx_f=0; fi ;;
					esac
					if [ $_bx_f = 1 ]; then
						_bx_pids="$_bx_pids $1"
						_bx_more=1
					fi
					;;
				esac
				;;
			esac
			shift 3
		done
	done
	# Who made this list is in it, and gone by now.
	set -- $_bx_pids
	_bx_pids=
	for _bx_f; do
		kill -s 0 "$_bx_f" 2>/dev/null && _bx_pids="$_bx_pids $_bx_f"
	done
}

# End the run: TERM once, then KILL until nobody is left. A run that has ended
# by itself has no child of the main shell; what it left behind stays.
_bx_end() {
	_bx_self
	_bx_watcher=${_bx_watcher:-$_bx_pid}
	_bx_grep=0
	printf 'a\0b\n' | grep -qF b && _bx_grep=1
	_bx_list
	if [ -z "$_bx_kids" ]; then
		sleep 0.1
		_bx_list
		# Unless somebody killed the main shell, and its children have another parent.
		if [ -z "$_bx_kids" ] && kill -s 0 $$; then return 0; fi
	fi
	for _bx_f in $_bx_pids; do
		kill -s TERM "$_bx_f"
		kill -s CONT "$_bx_f"
	done
	_bx_round=0
	while [ $_bx_round -lt 80 ]; do
		_bx_list
		[ -n "$_bx_pids" ] || break
		if [ $_bx_round -ge 12 ]; then
			for _bx_f in $_bx_pids; do kill -s KILL "$_bx_f"; done
		fi
		_bx_round=$((_bx_round + 1))
		sleep 0.1 || sleep 1
	done
	set -- $_bx_pids
	_bx_left=$#
} 2>/dev/null

# While the command doesn't read, the watcher is stuck in a write and sees
# nothing. So every second a heartbeat goes to the client on both streams (an
# `ssh` whose stderr is closed says nothing of it); when one can't, the client
# is gone, and if the watcher hasn't noticed in three more seconds the
# guard ends the run in its place.
_bx_beat() {
	exec 3>&9 4>&8 8>&- 9>&- </dev/null >/dev/null 2>&1
	trap '' PIPE HUP
	trap 'kill "$_bx_nap" 2>/dev/null; exit 0' TERM
	while sleep 1 & _bx_nap=$!; wait "$_bx_nap"; do
		_bx_say H >&3 && _bx_say H >&4 || break
	done
	sleep 3 &
	_bx_nap=$!
	wait "$_bx_nap"
	kill -s KILL "$_bx_watcher"
	trap '' TERM
	_bx_self
	_bx_guard=$_bx_pid
	_bx_end
}

_bx_watch() {
	_bx_self
	_bx_watcher=$_bx_pid
	_bx_guard=
	if [ "$_bx_in" = 1 ]; then
		_bx_beat &
		_bx_guard=$!
	fi
	exec 8>&-
	trap '' TERM HUP PIPE
	while read -r _bx_what _bx_size; do
		case $_bx_what in
		d) dd bs="$_bx_size" count=1 iflag=fullblock ;;
		e) exec >/dev/null ;;
		k) break ;;
		esac 2>/dev/null
	done
	exec >/dev/null
	[ -z "$_bx_guard" ] || kill -s TERM "$_bx_guard" 2>/dev/null
	_bx_left=0
	_bx_end
	_bx_say "S $_bx_left" >&9
}

# Shells write "Killed" and the like to their stderr, and die of it when nobody
# reads that any more: none has one here but the command.
_bx_main() {
	unset IFS
	exec 8>&1 9>&2 2>/dev/null
	_bx_watch | _bx_work "$@"
}
