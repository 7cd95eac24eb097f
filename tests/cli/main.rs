//! The binary as a user and as an agent would use it.

mod completions;
mod hook;
<<<<<<< HEAD
mod pin;
mod roundtrip;
mod scene;
=======
>>>>>>> c9d089c (Install, print, check and remove the hook)
mod support;
