//! Something that happens once and that futures wait for.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

#[derive(Debug, Default)]
pub(super) struct Event {
    happened: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
}

impl Event {
    pub fn happened(&self) -> bool {
        self.happened.get()
    }

    /// It has happened; a second time is none.
    pub fn happen(&self) {
        self.happened.set(true);
        for waker in self.waiting.take() {
            waker.wake();
        }
    }

    pub async fn wait(&self) {
        poll_fn(|context| {
            if self.happened.get() {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
