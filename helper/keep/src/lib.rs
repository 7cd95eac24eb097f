//! Tells, at the end of a bash, in which folder it ended and what it had exported.
//!
//! `helper/build.rs` makes a shared object of this one file, which the helper
//! carries and preloads into the bash of an agent's call. Nothing is added to the
//! command's text, so that `exit 3`, `set -e` and an EXIT trap mean what they
//! always mean: what is wanted is noted by the destructor, which the C library
//! runs in `exit`. Where bash makes its last command take its place without a fork
//! (`cd x && make`), it is noted by the `execve` below, which stands before the C
//! library's own. ptrace and a shared folder (`CLONE_FS`) would do the same, and
//! both take sudo its rights.
//!
//! It is loaded from a descriptor, `/proc/self/fd/N`; the note is the shared memory
//! of descriptor N+1. Its constructor closes both and removes its own name from the
//! environment before bash looks at it, so that neither the command nor any child
//! ever meets it.
//!
//! Invariant: in any process but the bash that it was loaded into, nothing is
//! noted, and `execve` is the kernel's.
//!
//! No libc, no allocation, no panic: it loads under glibc as under musl, and what
//! it needs of bash and of the C library are weak symbols.

#![no_std]

use core::arch::{asm, global_asm};
use core::ffi::{c_char, c_int};
use core::ptr::{null, null_mut};

mod note;

use note::{
    NOTE_EMPTY, NOTE_FOLDER, NOTE_FOLDER_LENGTH, NOTE_PATH, NOTE_SIZE, NOTE_STATE, NOTE_TOO_MUCH,
    NOTE_VARIABLES, NOTE_VARIABLES_LENGTH, NOTE_WANTED, NOTE_WRITTEN,
};

/// How the loader is told of this file.
const NAME: &[u8] = b"LD_PRELOAD=";
const OWN: &[u8] = b"/proc/self/fd/";
/// The error of a file that is no program, and perhaps a script.
const ENOEXEC: isize = -8;

/// The numbers of the system calls.
#[cfg(target_arch = "x86_64")]
mod call {
    pub(crate) const CLOSE: usize = 3;
    pub(crate) const MMAP: usize = 9;
    pub(crate) const GETPID: usize = 39;
    pub(crate) const EXECVE: usize = 59;
    pub(crate) const GETCWD: usize = 79;
    pub(crate) const READLINKAT: usize = 267;
}
#[cfg(target_arch = "aarch64")]
mod call {
    pub(crate) const CLOSE: usize = 57;
    pub(crate) const MMAP: usize = 222;
    pub(crate) const GETPID: usize = 172;
    pub(crate) const EXECVE: usize = 221;
    pub(crate) const GETCWD: usize = 17;
    pub(crate) const READLINKAT: usize = 78;
}

/// A weak symbol's address, or null.
macro_rules! weak {
    ($($function:ident = $symbol:literal),* $(,)?) => {
        $(
            #[cfg(target_arch = "x86_64")]
            global_asm!(
                concat!(".weak ", $symbol),
                concat!(".type keep_", $symbol, ", @function"),
                concat!("keep_", $symbol, ": mov rax, qword ptr [rip + ", $symbol, "@GOTPCREL]"),
                "ret",
            );
            #[cfg(target_arch = "aarch64")]
            global_asm!(
                concat!(".weak ", $symbol),
                concat!(".type keep_", $symbol, ", %function"),
                concat!("keep_", $symbol, ": adrp x0, :got:", $symbol),
                concat!("ldr x0, [x0, :got_lo12:", $symbol, "]"),
                "ret",
            );
            fn $function() -> *mut u8 {
                unsafe extern "C" {
                    #[link_name = concat!("keep_", $symbol)]
                    fn address() -> *mut u8;
                }
                // SAFETY: the lines above are this function; it reads one pointer.
                unsafe { address() }
            }
        )*
    };
}

weak! {
    // bash's own, which its executable exports for its loadable builtins.
    this_shell_builtin = "this_shell_builtin",
    exec_builtin = "exec_builtin",
    export_env = "export_env",
    temporary_env = "temporary_env",
    array_needs_making = "array_needs_making",
    maybe_make_export_env = "maybe_make_export_env",
    // The C library's.
    environ = "environ",
    errno_location = "__errno_location",
    gnu_version = "gnu_get_libc_version",
}

/// The note, once this process is a bash that is looked after.
static mut NOTE: *mut u8 = null_mut();
/// That process.
static mut OWNER: isize = 0;
/// What is noted stands, whatever this process still becomes.
static mut DONE: bool = false;

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: unsafe extern "C" fn(c_int, *const *const u8, *mut *mut u8) = begin;
#[used]
#[unsafe(link_section = ".fini_array")]
static END: unsafe extern "C" fn() = end;

/// A system call.
///
/// # Safety
///
/// As the call itself demands.
unsafe fn system(number: usize, a: [usize; 6]) -> isize {
    let answer: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller answers for the call; these are the registers that the
    // kernel reads and changes.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => answer,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        asm!("svc 0", in("x8") number, inlateout("x0") a[0] as isize => answer,
            in("x1") a[1], in("x2") a[2], in("x3") a[3], in("x4") a[4], in("x5") a[5],
            options(nostack));
    }
    answer
}

/// Runs before bash does.
///
/// # Safety
///
/// Only the loader calls it, in a process with one thread; glibc with the
/// arguments that it documents, musl with none.
unsafe extern "C" fn begin(_: c_int, _: *const *const u8, given: *mut *mut u8) {
    // SAFETY: `environ` is a variable of the C library where it exists. glibc may
    // not have set it yet, and passes its value instead.
    let variables = unsafe {
        match (gnu_version().is_null(), environ().is_null()) {
            (false, _) => given,
            (true, false) => *environ().cast::<*mut *mut u8>(),
            (true, true) => return,
        }
    };
    // SAFETY: it is the environment that the kernel made for this process: pointers
    // up to a null, to strings that lie one behind the other.
    let Some(fd) = (unsafe { take_name(variables) }) else {
        return;
    };
    // SAFETY: both descriptors were made by the helper for this file alone; a mapping
    // at an address of the kernel's choice touches nothing of ours.
    unsafe {
        if !this_shell_builtin().is_null() && !exec_builtin().is_null() {
            let shared = [0, NOTE_SIZE, 3, 1, fd + 1, 0];
            let note = system(call::MMAP, shared);
            if note > 0 {
                NOTE = note as *mut u8;
                OWNER = system(call::GETPID, [0; 6]);
            }
        }
        system(call::CLOSE, [fd, 0, 0, 0, 0, 0]);
        system(call::CLOSE, [fd + 1, 0, 0, 0, 0, 0]);
    }
}

/// Remove our own name from the environment, as if it had never been there; the
/// descriptor that it named.
///
/// # Safety
///
/// `variables` is the process's own environment as the kernel laid it out, and
/// nobody else looks at it now.
unsafe fn take_name(variables: *mut *mut u8) -> Option<usize> {
    let mut at = 0;
    // SAFETY: up to the null, each is a string.
    while !unsafe { *variables.add(at) }.is_null() {
        // SAFETY: as above.
        let entry = unsafe { *variables.add(at) };
        // SAFETY: both compare no further than the string's end.
        if unsafe { begins(entry, NAME) && begins(entry.add(NAME.len()), OWN) } {
            // SAFETY: `entry` is an element of `variables`, and long enough for both.
            return Some(unsafe { take_entry(variables, at) });
        }
        at += 1;
    }
    None
}

/// # Safety
///
/// As [`take_name`]; the entry at `at` begins with both words.
unsafe fn take_entry(variables: *mut *mut u8, at: usize) -> usize {
    // SAFETY: the caller's promise; every offset below stays within the strings.
    unsafe {
        let entry = *variables.add(at);
        let mut rest = entry.add(NAME.len() + OWN.len());
        let mut fd = 0;
        while (*rest).is_ascii_digit() {
            fd = fd * 10 + usize::from(*rest - b'0');
            rest = rest.add(1);
        }
        // Behind a colon comes the user's own list. Cut out is what lies between
        // `hole` and `rest`, and everything behind it moves up.
        let (is_alone, hole) = if *rest == b':' {
            rest = rest.add(1);
            (false, entry.add(NAME.len()))
        } else {
            rest = rest.add(1);
            (true, entry)
        };
        let gap = rest.offset_from_unsigned(hole);
        let mut end = rest;
        let (mut from, mut to) = (at + 1, if is_alone { at } else { at + 1 });
        loop {
            let next = *variables.add(from);
            if next.is_null() {
                break;
            }
            // Only what lies behind it in memory moves.
            *variables.add(to) = if next > entry { next.sub(gap) } else { next };
            let next_end = next.add(length(next) + 1);
            if next_end > end {
                end = next_end;
            }
            from += 1;
            to += 1;
        }
        *variables.add(to) = null_mut();
        if !is_alone && at + 1 == from {
            // The last one: its own end moves.
            end = rest.add(length(rest) + 1);
        }
        let moved = end.offset_from_unsigned(rest);
        copy(rest, hole, moved);
        for position in 0..gap {
            hole.add(moved + position).write_volatile(0);
        }
        fd
    }
}

/// # Safety
///
/// `text` is a string.
unsafe fn begins(text: *const u8, with: &[u8]) -> bool {
    // SAFETY: it stops at the first byte that differs, so at the end at the latest.
    (0..with.len()).all(|at| unsafe { *text.add(at) } == with[at])
}

/// # Safety
///
/// `text` is a string.
unsafe fn length(text: *const u8) -> usize {
    let mut length = 0;
    // SAFETY: up to the end of the string.
    while unsafe { text.add(length).read_volatile() } != 0 {
        length += 1;
    }
    length
}

/// Copy forwards; volatile, so that it doesn't become a call of a library.
///
/// # Safety
///
/// Both hold `length` bytes; they may overlap where `to` is the lower one.
unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    for at in 0..length {
        // SAFETY: the caller's promise.
        unsafe { to.add(at).write_volatile(from.add(at).read_volatile()) }
    }
}

/// The note, in the process that it belongs to.
fn own_note() -> Option<*mut u8> {
    // SAFETY: bash has one thread, and they were written before it began; asking
    // for the process's number touches nothing.
    unsafe {
        if NOTE.is_null() || DONE || system(call::GETPID, [0; 6]) != OWNER {
            return None;
        }
        Some(NOTE)
    }
}

/// Runs in `exit`.
///
/// # Safety
///
/// Only the C library calls it.
unsafe extern "C" fn end() {
    if let Some(note) = own_note() {
        // SAFETY: bash is about to end, with its variables as they were.
        unsafe { write(note, exported()) }
    }
}

/// What bash would give a program for its environment now; null where it can't be
/// asked.
///
/// # Safety
///
/// The process is a bash between two of its own steps. The list that bash made
/// before is freed.
unsafe fn exported() -> *const *const u8 {
    let [list, temporary, stale] = [export_env(), temporary_env(), array_needs_making()];
    if list.is_null() || maybe_make_export_env().is_null() {
        return null();
    }
    // SAFETY: they are bash's own variables and function of these names, of these
    // types since bash 3.
    unsafe {
        let make: extern "C" fn() = core::mem::transmute(maybe_make_export_env());
        if !temporary.is_null() && !stale.is_null() && !(*temporary.cast::<*mut u8>()).is_null() {
            // `A=1 make` exports to make alone.
            let before = temporary.cast::<*mut u8>().replace(null_mut());
            *stale.cast::<c_int>() = 1;
            make();
            *temporary.cast::<*mut u8>() = before;
            *stale.cast::<c_int>() = 1;
        } else {
            make();
        }
        *list.cast::<*const *const u8>()
    }
}

/// Note the folder and, if asked, the variables.
///
/// # Safety
///
/// `note` is the mapping; `variables` is null or an environment.
unsafe fn write(note: *mut u8, variables: *const *const u8) {
    // SAFETY: every write stays below `NOTE_SIZE`.
    unsafe {
        set(note, NOTE_STATE, NOTE_EMPTY);
        let Some(folder) = folder(note.add(NOTE_FOLDER)) else {
            return;
        };
        set(note, NOTE_FOLDER_LENGTH, folder);
        let mut used = 0;
        let wanted = *note.add(NOTE_WANTED) != 0;
        if wanted {
            used = variables_into(note, variables).unwrap_or(NOTE_TOO_MUCH as usize);
        }
        set(note, NOTE_VARIABLES_LENGTH, used as u32);
        set(note, NOTE_STATE, NOTE_WRITTEN);
    }
}

/// # Safety
///
/// As [`write`].
unsafe fn variables_into(note: *mut u8, variables: *const *const u8) -> Option<usize> {
    if variables.is_null() {
        return None;
    }
    let room = NOTE_SIZE - NOTE_VARIABLES;
    let (mut used, mut at) = (0, 0);
    // SAFETY: up to the null, each is a string; nothing is written beyond the room.
    unsafe {
        while !(*variables.add(at)).is_null() {
            let text = *variables.add(at);
            let length = length(text) + 1;
            if used + length > room {
                return None;
            }
            copy(text, note.add(NOTE_VARIABLES + used), length);
            used += length;
            at += 1;
        }
    }
    Some(used)
}

/// # Safety
///
/// `note` is the mapping and `at` one of its numbers.
unsafe fn set(note: *mut u8, at: usize, value: u32) {
    // SAFETY: the numbers are aligned, and so is the mapping.
    unsafe { note.add(at).cast::<u32>().write_volatile(value) }
}

/// The current folder, also one that was removed, by the name that it had.
///
/// # Safety
///
/// `to` has room for [`NOTE_PATH`] bytes.
unsafe fn folder(to: *mut u8) -> Option<u32> {
    const GONE: &[u8] = b" (deleted)";
    const OWN_FOLDER: &[u8] = b"/proc/self/cwd\0";
    // SAFETY: the kernel writes at most as much as it is told, and reads a string.
    let length = unsafe {
        let length = system(call::GETCWD, [to as usize, NOTE_PATH, 0, 0, 0, 0]);
        if length > 0 {
            length - 1
        } else {
            let link = OWN_FOLDER.as_ptr() as usize;
            let length = system(call::READLINKAT, [0, link, to as usize, NOTE_PATH, 0, 0]);
            length - GONE.len() as isize
        }
    };
    // SAFETY: the kernel wrote that byte.
    (length > 0 && unsafe { *to } == b'/').then_some(length as u32)
}

/// What bash calls to become another program.
///
/// # Safety
///
/// As execve(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(
    path: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
) -> c_int {
    let note = own_note();
    // SAFETY: with a note this process is bash, whose variable and function these
    // are; the arguments are the caller's own.
    unsafe {
        let mut variables = envp.cast::<*const u8>();
        if let Some(note) = note {
            let running = *this_shell_builtin().cast::<*mut u8>();
            if running == exec_builtin() {
                // The user's own `exec`: what follows isn't this shell any more.
                set(note, NOTE_STATE, NOTE_EMPTY);
            } else {
                let with_more = !temporary_env().is_null()
                    && !(*temporary_env().cast::<*mut u8>()).is_null()
                    && *note.add(NOTE_WANTED) != 0;
                if with_more {
                    // bash frees its list when it makes another.
                    let copied = duplicate(variables);
                    write(note, if copied.is_null() { copied } else { exported() });
                    if !copied.is_null() {
                        variables = copied;
                    }
                } else {
                    write(note, variables);
                }
            }
        }
        let arguments = [path as usize, argv as usize, variables as usize, 0, 0, 0];
        let answer = system(call::EXECVE, arguments);
        if let Some(note) = note {
            if answer == ENOEXEC {
                // A script without `#!`: bash goes on as its shell, in this process.
                DONE = true;
            } else {
                set(note, NOTE_STATE, NOTE_EMPTY);
            }
        }
        if !errno_location().is_null() {
            let errno: extern "C" fn() -> *mut c_int = core::mem::transmute(errno_location());
            *errno() = -answer as c_int;
        }
        -1
    }
}

/// A copy of an environment that bash doesn't know of.
///
/// # Safety
///
/// `variables` is an environment.
unsafe fn duplicate(variables: *const *const u8) -> *const *const u8 {
    // SAFETY: the copy has room for exactly what is counted first.
    unsafe {
        let (mut count, mut bytes) = (0, 0);
        while !(*variables.add(count)).is_null() {
            bytes += length(*variables.add(count)) + 1;
            count += 1;
        }
        let table = (count + 1) * size_of::<*const u8>();
        let private = [0, table + bytes, 3, 0x22, usize::MAX, 0];
        let memory = system(call::MMAP, private);
        if memory <= 0 {
            return null();
        }
        let list = memory as *mut *const u8;
        let mut to = (memory as *mut u8).add(table);
        for at in 0..count {
            let text = *variables.add(at);
            let length = length(text) + 1;
            copy(text, to, length);
            *list.add(at) = to;
            to = to.add(length);
        }
        *list.add(count) = null();
        list
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
