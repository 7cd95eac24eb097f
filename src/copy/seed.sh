# $1 the copy, $2 its marker, $3 `over` to send over what is there. Reads a tar stream.
export LC_ALL=C
[ -h "$1" ] && exit 87
mkdir -p -- "$1" && cd -- "$1" || exit 83
if [ -e .boxery-copy ]; then
    case $(cat .boxery-copy) in
        "$2") [ "$3" = over ] || exit 84 ;;
        "$2 unfinished") ;;
        *) exit 81 ;;
    esac
elif [ -n "$(ls -A)" ]; then
    exit 82
fi
printf '%s unfinished\n' "$2" >.boxery-copy || exit 85
tar -xmof - || exit 86
printf '%s\n' "$2" >.boxery-new && mv -f .boxery-new .boxery-copy || exit 85
