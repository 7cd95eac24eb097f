# Before each of the other scripts: a git that looks at no other repository than the
# folder's, runs no hook, no monitor and no clean-up, and never asks or fetches.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR GIT_NAMESPACE GIT_PREFIX \
    GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_SHALLOW_FILE GIT_CEILING_DIRECTORIES \
    GIT_LITERAL_PATHSPECS GIT_GLOB_PATHSPECS GIT_ICASE_PATHSPECS GIT_EXTERNAL_DIFF GIT_TRACE
export LC_ALL=C GIT_OPTIONAL_LOCKS=0 GIT_NO_REPLACE_OBJECTS=1 GIT_NO_LAZY_FETCH=1 \
    GIT_TERMINAL_PROMPT=0 GIT_ALLOW_PROTOCOL=fd
quiet() {
    git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.splitIndex=false \
        -c gc.auto=0 -c maintenance.auto=false -c submodule.recurse=false "$@"
}

# Whether nobody has this lock of git's. One that a crash of ours left says so.
is_free() {
    [ -e "$1" ] || return 0
    [ "$(cat "$1" 2>/dev/null)" = boxery ] && [ -n "$(find "$1" -mmin +1 2>/dev/null)" ] && rm -f "$1"
}
rest() {
    sleep 0.2 2>/dev/null || sleep 1
}
