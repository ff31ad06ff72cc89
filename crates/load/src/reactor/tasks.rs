//! The tasks of one loop, and which of them have something to do.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use crate::shared::lock;

/// Tasks by number. A waker may be called from any thread, though only this one does.
pub struct Tasks<F> {
    every: Vec<Option<Task<F>>>,
    left: usize,
    ready: Arc<ReadyQueue>,
    turn: Vec<usize>,
}

struct Task<F> {
    future: Pin<Box<F>>,
    waker: Waker,
    woken: Arc<TaskWaker>,
}

#[derive(Default)]
struct ReadyQueue(Mutex<Vec<usize>>);

struct TaskWaker {
    task: usize,
    is_queued: AtomicBool,
    ready: Arc<ReadyQueue>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::AcqRel) {
            let mut ready = lock(&self.ready.0);
            ready.push(self.task);
        }
    }
}

impl<F: Future<Output = ()>> Tasks<F> {
    /// All of them ready to begin.
    pub fn new(futures: Vec<F>) -> Self {
        let ready = Arc::<ReadyQueue>::default();
        let every: Vec<_> = futures
            .into_iter()
            .enumerate()
            .map(|(task, future)| {
                let woken = Arc::new(TaskWaker {
                    task,
                    is_queued: false.into(),
                    ready: Arc::clone(&ready),
                });
                woken.wake_by_ref();
                Some(Task {
                    future: Box::pin(future),
                    waker: Waker::from(Arc::clone(&woken)),
                    woken,
                })
            })
            .collect();
        Self {
            left: every.len(),
            every,
            ready,
            turn: Vec::new(),
        }
    }

    /// Whether all have ended.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Lets every task that was woken go on, once: one woken meanwhile waits for the sockets to be looked at again.
    pub fn run_ready(&mut self) {
        {
            let mut ready = lock(&self.ready.0);
            std::mem::swap(&mut *ready, &mut self.turn);
        }
        for &number in &self.turn {
            let Some(task) = &mut self.every[number] else {
                continue;
            };
            task.woken.is_queued.store(false, Ordering::Release);
            let mut context = Context::from_waker(&task.waker);
            if task.future.as_mut().poll(&mut context).is_ready() {
                self.every[number] = None;
                self.left -= 1;
            }
        }
        self.turn.clear();
    }

    /// Whether a task was woken and has not gone on yet.
    pub fn has_ready(&self) -> bool {
        !lock(&self.ready.0).is_empty()
    }
}
