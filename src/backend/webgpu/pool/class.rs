//! The buffers of one size, and which of them are free.

use std::rc::Rc;

use super::PooledBuffer;

/// All buffers of one size.
#[derive(Debug, Default)]
pub(super) struct Class {
    pub places: Vec<Option<Rc<PooledBuffer>>>,
    /// Places whose buffers were given back.
    holes: Vec<usize>,
    /// A bit a place, set where the buffer is free.
    free: Vec<u64>,
    /// How many are.
    pub free_count: usize,
    /// No word before this one has a bit set.
    first: usize,
    /// When one was last wanted.
    pub wanted: u64,
}

impl Class {
    pub fn put(&mut self, place: usize) {
        self.free[place / 64] |= 1 << (place % 64);
        self.free_count += 1;
        self.first = self.first.min(place / 64);
    }

    pub fn unset(&mut self, place: usize) {
        self.free[place / 64] &= !(1 << (place % 64));
        self.free_count -= 1;
    }

    /// The first free buffer that will do.
    pub fn take(&mut self, will_do: impl Fn(&Rc<PooledBuffer>) -> bool) -> Option<Rc<PooledBuffer>> {
        while self.free.get(self.first) == Some(&0) {
            self.first += 1;
        }
        for (k, &word) in self.free.iter().enumerate().skip(self.first) {
            let mut left = word;
            while left != 0 {
                let place = 64 * k + left.trailing_zeros() as usize;
                left &= left - 1;
                let Some(buffer) = self.places[place].as_ref().filter(|b| will_do(b)) else { continue };
                let buffer = Rc::clone(buffer);
                self.unset(place);
                return Some(buffer);
            }
        }
        None
    }

    /// Takes the last free buffer out of the pool.
    pub fn remove_last_free(&mut self) -> Option<Rc<PooledBuffer>> {
        let (k, word) = self.free.iter().enumerate().rev().find(|(_, word)| **word != 0)?;
        let place = 64 * k + 63 - word.leading_zeros() as usize;
        self.unset(place);
        self.remove(place)
    }

    pub fn remove(&mut self, place: usize) -> Option<Rc<PooledBuffer>> {
        self.holes.push(place);
        self.places[place].take()
    }

    /// A place for a new buffer.
    pub fn room(&mut self) -> usize {
        self.holes.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.free.resize(self.places.len().div_ceil(64), 0);
            self.places.len() - 1
        })
    }
}
