# $1 the copy, $2 its marker, $3 `once` to make it, `over` to take one that is there too,
# or `move` to take what is in $4, where the copy may lie from before.
export LC_ALL=C
is_ours() {
    [ -f "$1/.boxery-copy" ] && [ ! -h "$1" ] || return 1
    case $(cat "$1/.boxery-copy") in "$2" | "$2 unfinished") ;; *) return 1 ;; esac
}
[ -h "$1" ] && exit 87
if [ -n "$4" ] && [ ! "$1" -ef "$4" ] && is_ours "$4" "$2"; then
    [ "$3" = move ] || exit 88
elif [ "$3" = move ]; then
    exit 80
fi
# At the laptop's own path the folders above may be root's to make.
[ -d "$1" ] || mkdir -p -- "$1" 2>/dev/null ||
    sudo -n install -d -o "$(id -u)" -g "$(id -g)" -- "$1" 2>/dev/null ||
    mkdir -p -- "$1" || exit 83
cd -- "$1" || exit 83
if [ -e .boxery-copy ]; then
    case $(cat .boxery-copy) in
        "$2") [ "$3" = over ] || exit 84 ;;
        # What of it is missing isn't known, so that nothing counts as deleted there.
        "$2 unfinished") [ "$3" = move ] || rm -f .boxery-epoch ;;
        *) exit 81 ;;
    esac
elif [ -n "$(ls -A | grep -vx '\.boxery-new')" ]; then
    exit 82
fi
if [ "$3" = move ]; then
    printf '%s unfinished\n' "$2" >.boxery-copy || exit 85
    # Marked as unfinished on both sides until all of it is here.
    printf '%s unfinished\n' "$2" >"$4/.boxery-copy" || exit 85
    find "$4/." ! -name . -prune ! -name .boxery-copy -exec mv -- {} . \; || exit 86
    [ -z "$(ls -A "$4" | grep -v '^\.boxery-copy$')" ] || exit 86
    rm -f -- "$4/.boxery-copy"
    rmdir -- "$4" 2>/dev/null || sudo -n rmdir -- "$4" 2>/dev/null
fi
printf '%s\n' "$2" >.boxery-new && mv -f .boxery-new .boxery-copy || exit 85
