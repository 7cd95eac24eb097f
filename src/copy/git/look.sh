# $1 the folder; on the VM $2 the copy's marker and $3 the number that is left there.
# Says how the repository in it stands, one fact a line, `end` last.
cd -- "$1" 2>/dev/null || { echo 'odd its folder is gone'; echo end; exit; }
if [ -n "$2" ]; then
    [ -f .boxery-copy ] && [ ! -h .boxery-copy ] && [ "$(cat .boxery-copy)" = "$2" ] ||
        { echo 'odd its folder is no complete copy'; echo end; exit; }
    if [ -h .git ]; then
        echo 'odd its .git is a link'; echo end; exit
    elif [ -e .git ] && [ ! -d .git ]; then
        echo 'odd its .git is no folder'; echo end; exit
    fi
fi
command -v git >/dev/null || { echo nogit; echo end; exit; }
[ -e .git ] || { echo none; echo end; exit; }
if ! facts=$(quiet rev-parse --show-prefix --git-dir --git-common-dir \
    --git-path info/exclude --show-object-format 2>&1); then
    printf 'odd git refuses it: %s\n' "$(printf '%s\n' "$facts" | head -n 1)"; echo end; exit
fi
{ IFS= read -r prefix; IFS= read -r dir; IFS= read -r common; IFS= read -r exclude; IFS= read -r format; } <<EOF
$facts
EOF
[ -z "$prefix" ] || { echo 'odd its folder is no repository'; echo end; exit; }
[ "$format" = sha256 ] || format=sha1
printf 'format %s\ndir %s\n' "$format" "$dir"
[ "$dir" = "$common" ] || printf 'worktree %s\n' "${dir##*/}"
[ -s "$common/shallow" ] && echo shallow
waited=
while ! is_free "$dir/index.lock"; do
    if [ "$waited" = ......... ]; then
        echo locked
        break
    fi
    waited=$waited.
    rest
done
for name in MERGE_HEAD BISECT_LOG rebase-merge rebase-apply sequencer; do
    [ -e "$dir/$name" ] && printf 'busy %s\n' "$name"
done
for name in rebase-merge rebase-apply; do
    [ -f "$dir/$name/head-name" ] && printf 'held %s\n' "$(cat "$dir/$name/head-name")"
done
[ -d "$common/worktrees" ] && quiet worktree list --porcelain | sed -n 's/^branch /held /p'
head=$(quiet symbolic-ref -q HEAD) && printf 'head %s\n' "$head"
{ read -r at; read -r tree; read -r picked; read -r reverted; } <<EOF
$(printf '%s\n' HEAD 'HEAD^{tree}' CHERRY_PICK_HEAD REVERT_HEAD |
    quiet cat-file --batch-check='%(objectname)')
EOF
case $picked in *' missing') ;; *) echo 'busy CHERRY_PICK_HEAD' ;; esac
case $reverted in *' missing') ;; *) echo 'busy REVERT_HEAD' ;; esac
case $at in
    *' missing') at= tree= ;;
    *) printf 'at %s\n' "$at" ;;
esac

# The index as a tree, written from a picture of it: nobody is kept from the index.
picture=$dir/boxery-index.$$
trap 'rm -f "$picture" "$picture.lock"' EXIT
[ ! -f "$dir/index" ] || cp -- "$dir/index" "$picture" || { echo 'odd its index cannot be read'; echo end; exit; }
if index=$(GIT_INDEX_FILE=$picture quiet write-tree --missing-ok 2>/dev/null); then
    printf 'index %s\n' "$index"
    # What is staged travels as a commit that says nothing else.
    if [ "$index" != "${tree:-none}" ] && [ -n "$tree" -o -f "$dir/index" ]; then
        export GIT_AUTHOR_NAME=boxery GIT_AUTHOR_EMAIL=boxery GIT_AUTHOR_DATE='1000000000 +0000' \
            GIT_COMMITTER_NAME=boxery GIT_COMMITTER_EMAIL=boxery GIT_COMMITTER_DATE='1000000000 +0000'
        staged=$(echo 'what is staged' | quiet commit-tree ${at:+-p "$at"} "$index") && printf 'staged %s\n' "$staged"
    fi
fi

if [ -n "$2" ]; then
    # Ours to keep: which repository it is, and how far the last exchange came.
    if { IFS=' ' read -r id number; } 2>/dev/null <.git/boxery && [ -n "$id" ]; then
        printf 'id %s %s\n' "$id" "$number"
        [ "$number" = "$3" ] || {
            printf '%s %s\n' "$id" "$3" >.git/boxery.new && mv -f .git/boxery.new .git/boxery
        }
    fi
    [ -z "$staged" ] || quiet update-ref refs/boxery/index "$staged"
else
    printf 'exclude %s\n' "$exclude"
    quiet config --type=path --get-regexp \
        '^(core\.(excludesfile|autocrlf|eol|sparsecheckout)|extensions\.partialclone|remote\..*\.promisor)$' |
        sed 's/^/set /'
fi
quiet for-each-ref --format='ref %(objectname) %(refname) %(symref)' \
    refs/heads refs/tags refs/notes refs/remotes refs/boxery || { echo 'odd its refs cannot be read'; }
echo end
