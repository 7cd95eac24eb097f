# $1 the folder, $2 whence it comes, $3 the index's tree as it is and $4 as it shall be,
# $5 HEAD as it is and $6 as it shall be: what shall stay is empty. Reads what `git
# update-ref` reads in three parts: what comes before HEAD moves, what comes after it,
# and what can only come after that. Ends with 75 where somebody holds the index, with 76
# where something moved meanwhile.
cd -- "$1" || exit 83
dir=$(quiet rev-parse --git-dir) || exit 84
refs=$(cat)
part() {
    printf '%s\n' "$refs" | sed -n "/^-- $1\$/,/^-- $2\$/{/^--/!p;}"
}
picture=$dir/boxery-index.$$
lock=$dir/index.lock
held=
trap 'rm -f "$picture" "$picture".*; [ -z "$held" ] || rm -f "$lock"' EXIT
trap 'exit 143' HUP INT TERM

move() {
    set -- "$(part "$@")"
    [ -z "$1" ] || printf '%s\n' "$1" | quiet update-ref -m "boxery: from $from" --create-reflog --stdin || exit 76
}
from=$2

if [ -n "$4" ]; then
    for attempt in 1 2 3 4 5; do
        rm -f "$picture" "$picture.new" "$picture.was"
        if [ -f "$dir/index" ]; then
            cp -- "$dir/index" "$picture.was" && cp -- "$picture.was" "$picture" &&
                cp -- "$picture" "$picture.new" || exit 84
        fi
        # Which writes into its index, and where there is none makes it.
        [ "$(GIT_INDEX_FILE=$picture quiet write-tree --missing-ok)" = "$3" ] || exit 76
        GIT_INDEX_FILE=$picture.new quiet read-tree -i -m "$4" || exit 84
        # As git takes it: whoever makes the file has it. One that we left in a crash
        # says so.
        for wait in 1 2 3 4 5 6 7 8 9 10; do
            if (set -C; echo boxery >"$lock") 2>/dev/null; then
                held=yes
                break
            fi
            is_free "$lock" || rest
        done
        [ -n "$held" ] || exit 75
        if [ -f "$dir/index" ]; then
            cmp -s "$dir/index" "$picture.was" && break
        elif [ ! -f "$picture.was" ]; then
            break
        fi
        rm -f "$lock"
        held=
    done
    [ -n "$held" ] || exit 76
fi
if [ -n "$5" ]; then
    now=$(quiet symbolic-ref -q HEAD || quiet rev-parse --verify HEAD) || exit 84
    [ "$now" = "$5" ] || exit 76
fi
move before after
case $6 in
    '') ;;
    refs/*) quiet symbolic-ref -m "boxery: from $from" HEAD "$6" || exit 84 ;;
    *) quiet update-ref -m "boxery: from $from" --no-deref HEAD "$6" || exit 76 ;;
esac
move after last
move last end
[ -z "$4" ] || mv -f -- "$picture.new" "$dir/index" || exit 84
