//! The contracts between actors, one file each: the data that passes from one actor to another, without behaviour.
//!
//! | file | holds | written by | read by |
//! |---|---|---|---|
//! | `tape`, `brief`, `records` | what a session recorded, in program order | sessions (`array/`) | scheduler |
//! | `region` | a closed, placed piece of the graph, with liveness | scheduler | fusion |
//! | `plan` | a region's kernels over virtual buffers | fusion | residency; devices read its launches |
//! | `batch` | commands over named allocations | residency | devices |
//! | `device` | what the others may know of a device, in numbers | devices, when they are opened | all |
//! | `costs` | constants of cost and time, with their units and origins | | all |
//! | `messages` | what each actor is told, and what it tells others | the ring carries them | |
//!
//! Rules of this folder:
//! - A type belongs here if two actors name it. A type that only one actor names belongs in that actor's folder.
//! - A type here is data: fields, and small methods that read and change nothing but these fields and their arguments. It holds no
//!   channel, clock, thread or handle of a GPU, and decides nothing that belongs to an actor. The exception is `records`:
//!   it keeps emptied chunks of tapes for their next use, since sessions fill them and the scheduler empties them.
//! - Nothing here imports an actor, nor anything that imports one (ARCHITECTURE.md, "Who may import whom"). Kernels and
//!   the graph's types lie below it.
//! - A message in the past tense is a fact, one in the imperative is an instruction. A fact is sent by the actor that
//!   observed it, an instruction by the one actor that decides.
//! - The invariants of a contract have names and are listed in the header of its file: REGION-1 to REGION-5 (`region`),
//!   PLAN-1 to PLAN-4 (`plan`), BRIEF-1 (`brief`), RECORDS-1 (`records`), DEV-1 (`device`). The writer keeps it, and
//!   the reader relies on it.

pub mod batch;
pub mod brief;
pub mod costs;
pub mod device;
pub mod messages;
pub mod plan;
pub mod records;
pub mod region;
pub mod tape;

#[cfg(test)]
pub(crate) mod fixtures;
