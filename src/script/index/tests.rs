//! Reading, writing, deleting and joining against what Octave gives.
