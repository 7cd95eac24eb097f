//! The VM on this machine.
