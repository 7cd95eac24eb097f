//! Project and copy on one disk, made the same by the engine: the model test with its
//! crashes, and the hazards one by one.

mod apply;
mod disk;
mod model;
mod pair;
mod reconcile;
mod talk;
mod watch;
