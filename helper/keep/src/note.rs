//! Where what stands in the memory that the helper and the preloaded file share: a
//! module of both. Numbers are 32 bits in the machine's own order.

/// Its size. Pages that nobody writes to cost nothing.
pub(crate) const NOTE_SIZE: usize = 4 * 1024 * 1024;
/// Not zero: the exported variables are wanted too. The helper writes it.
pub(crate) const NOTE_WANTED: usize = 0;
/// [`NOTE_EMPTY`] or [`NOTE_WRITTEN`].
pub(crate) const NOTE_STATE: usize = 4;
/// How long the folder's name is.
pub(crate) const NOTE_FOLDER_LENGTH: usize = 8;
/// How long the variables are, or [`NOTE_TOO_MUCH`].
pub(crate) const NOTE_VARIABLES_LENGTH: usize = 12;
/// The folder's name.
pub(crate) const NOTE_FOLDER: usize = 16;
/// The longest name that the kernel tells, with its NUL.
pub(crate) const NOTE_PATH: usize = 4096;
/// `NAME=VALUE`, each with a NUL behind it.
pub(crate) const NOTE_VARIABLES: usize = NOTE_FOLDER + NOTE_PATH;

/// Nothing was noted, or it was taken back.
pub(crate) const NOTE_EMPTY: u32 = 0;
/// All of it is there.
pub(crate) const NOTE_WRITTEN: u32 = 1;
/// They couldn't be had, or there were too many.
pub(crate) const NOTE_TOO_MUCH: u32 = u32::MAX;
