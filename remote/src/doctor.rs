//! Each step of the way to a VM, one after the other.
