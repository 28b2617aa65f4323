//! Hash tables whose keys come from wgrad itself: nobody chooses them so that they collide, so a short hash does.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table with a short hash.
pub(super) type Table<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// Rotates, adds and multiplies, a word at a time.
#[derive(Debug, Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }
    fn write_u64(&mut self, word: u64) {
        // An odd number near 2^64 divided by the golden ratio.
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
    fn finish(&self) -> u64 {
        // The table takes its place from the low bits, which the product mixes least.
        self.0 ^ self.0 >> 32
    }
}
