# Takes a helper that is sent, up to the end of its stdin, and sends back what came.
# Read by /bin/sh; before it come _bx_no, the mark, and _bx_to, the file.
#
#   MARK B       it begins to read
#   MARK C N     writing ended with status N; with 0 the file's bytes follow
#   MARK W TEXT  what the system said
umask 077
printf '%sB\n' "$_bx_no"
_bx_why=$({ cat >"$_bx_to"; } 2>&1)
_bx_status=$?
[ $_bx_status = 0 ] || printf '%sW %s\n' "$_bx_no" "$_bx_why"
printf '%sC %s\n' "$_bx_no" $_bx_status
if [ $_bx_status = 0 ]; then exec cat "$_bx_to"; fi
rm -f "$_bx_to" 2>/dev/null
