//! A device that another process has opened: its verbs, over a socket.
//!
//! A driver may refuse a process for good after one fault of its code, and serve the next process as ever. A [`ProcessDevice`] is the
//! device of such a process: each verb is a message, and so is its answer. Handles and addresses are those of the other process. **It is a
//! way on after a failure, not a fast one**: a verb takes tens of microseconds, and what is copied is copied twice more.
//!
//! Memory that host and device share is the other process' own; here is a copy of it. What the host has changed travels with a launch
//! that is given an address inside, and what the device has changed comes when a stream is seen to be idle. So prints arrive when a
//! launch is over.

mod client;
mod mirror;
mod server;
#[cfg(test)]
mod tests;
mod wire;

pub use client::ProcessDevice;
pub use server::{Opened, serve};
