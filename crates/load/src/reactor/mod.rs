//! One thread's event loop: tasks, sockets and timers on one epoll instance.
//!
//! Written for load generation, where the client's own processor time is part of the measurement: a statement costs one
//! send, one readiness (shared by all sockets that are ready at once) and one receive, as in a loop written by hand, and
//! the loop knows how busy it was. Tasks never leave their thread; one that has a thread for itself sleeps in its receives.

mod clock;
mod direction;
mod epoll;
mod poller;
mod ring;
mod socket;
mod stream;
mod tasks;
mod timers;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fairtrial_protocol::clock::monotonic_ns;

pub use clock::Load;
pub use fairtrial_protocol::load::Interface;
pub use socket::{Address, Socket};
pub use stream::{ByteStream, authorities, tls_config};

use self::clock::LoopAccount;
use self::poller::Poller;
use self::tasks::Tasks;
use self::timers::Timers;
use crate::stop::Stop;

/// How soon a sleeping thread hears of a stop said by another; 50 looks a second cost no measurable processor time.
const STOP_LATENCY_NS: i64 = 20_000_000;

/// How often sockets are asked whether they have waited too long: deadlines are seconds, and a timer for each statement
/// would cost more than the statement's own bookkeeping.
const SWEEP_NS: i64 = 100_000_000;

thread_local! {
    static HERE: RefCell<Option<Rc<LoopState>>> = const { RefCell::new(None) };
}

/// What sockets and timers of one thread share with its loop.
struct LoopState {
    poller: RefCell<Poller>,
    interface: Interface,
    timers: RefCell<Timers>,
    account: RefCell<LoopAccount>,
    /// When the loop last looked: exact enough for deadlines of seconds, and read for every statement.
    looked_ns: Cell<i64>,
}

impl LoopState {
    /// Of the loop that runs on this thread.
    fn here() -> Rc<Self> {
        HERE.with_borrow(|here| {
            here.clone()
                .expect("sockets and timers are used inside `run` or `block_on`")
        })
    }

    /// Notes that the thread slept in a call from `before_ns` until now.
    fn slept(&self, before_ns: i64) {
        let now_ns = monotonic_ns();
        self.looked_ns.set(now_ns);
        self.account.borrow_mut().waited(before_ns, now_ns);
    }
}

/// Puts the thread's former loop back, whatever ends this one.
struct FormerLoop(Option<Rc<LoopState>>);

impl Drop for FormerLoop {
    fn drop(&mut self) {
        let former = self.0.take();
        HERE.with_borrow_mut(|here| *here = former);
    }
}

/// A loop that runs on this thread, until it is dropped.
struct Loop {
    shared: Rc<LoopState>,
    swept_ns: i64,
    _entered: FormerLoop,
}

impl Loop {
    fn new(interface: Interface) -> io::Result<Self> {
        let poller = Poller::new(interface)?;
        let interface = match interface {
            Interface::Blocking => interface, // its poller serves what is not a receive
            Interface::Epoll | Interface::IoUring => poller.interface(),
        };
        let shared = Rc::new(LoopState {
            interface,
            account: RefCell::new(LoopAccount::new(interface)),
            poller: RefCell::new(poller),
            timers: RefCell::default(),
            looked_ns: monotonic_ns().into(),
        });
        let former = HERE.with_borrow_mut(|here| here.replace(Rc::clone(&shared)));
        Ok(Self {
            shared,
            swept_ns: monotonic_ns(),
            _entered: FormerLoop(former),
        })
    }

    /// Waits until something happens, `limit_ns` at most, and wakes whom it concerns.
    fn turn(&mut self, limit_ns: i64) -> io::Result<()> {
        let before_ns = monotonic_ns();
        let next_ns = self.shared.timers.borrow().next_ns().unwrap_or(i64::MAX);
        let wait_ns = next_ns.saturating_sub(before_ns).clamp(0, limit_ns);
        self.shared.poller.borrow_mut().wait(wait_ns)?;
        let now_ns = monotonic_ns();
        self.shared.looked_ns.set(now_ns);
        let late_ns = self.shared.timers.borrow_mut().fire(now_ns);
        let mut account = self.shared.account.borrow_mut();
        account.waited(before_ns, now_ns);
        account.fired(late_ns);
        if now_ns - self.swept_ns >= SWEEP_NS {
            self.swept_ns = now_ns;
            self.shared.poller.borrow_mut().expire(now_ns);
        }
        Ok(())
    }
}

/// Runs tasks side by side on this thread until all have ended or `stop` abandons them; returns how busy it was.
pub fn run<F: Future<Output = ()> + 'static>(tasks: Vec<F>, stop: &Stop) -> io::Result<Load> {
    let interface = if tasks.len() == 1 {
        Interface::Blocking
    } else {
        Interface::IoUring
    };
    run_by(tasks, stop, interface)
}

fn run_by<F: Future<Output = ()> + 'static>(
    tasks: Vec<F>,
    stop: &Stop,
    interface: Interface,
) -> io::Result<Load> {
    let mut here = Loop::new(interface)?;
    // Dropped before the loop, so that abandoned tasks can still let go of their sockets.
    let mut tasks = Tasks::new(tasks);
    let mut was_stopping = false;
    loop {
        tasks.run_ready();
        if tasks.is_empty() || stop.abandoned() {
            return Ok(here.shared.account.borrow().load());
        }
        if !was_stopping && stop.stopping() {
            was_stopping = true;
            here.shared.timers.borrow_mut().fire_all();
        }
        here.turn(if tasks.has_ready() {
            0
        } else {
            STOP_LATENCY_NS
        })?;
    }
}

/// Says when the window begins and ends, as far as that is known, in which this thread's loop, if it has one, keeps
/// account of its time.
pub fn measures(start_ns: i64, end_ns: i64) {
    HERE.with_borrow(|here| {
        if let Some(here) = here {
            here.account.borrow_mut().window(start_ns, end_ns);
        }
    });
}

/// Runs one future to its end on this thread.
pub fn block_on<T>(future: impl Future<Output = T>) -> io::Result<T> {
    block_on_by(future, Interface::Epoll)
}

fn block_on_by<T>(future: impl Future<Output = T>, interface: Interface) -> io::Result<T> {
    let mut here = Loop::new(interface)?;
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Ok(output);
        }
        here.turn(STOP_LATENCY_NS)?;
    }
}

/// Lets the loop look around once.
async fn turn() {
    let mut has_turned = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut has_turned, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Waits, but not beyond a stop.
pub async fn pause(duration: Duration, stop: &Stop) {
    if !stop.stopping() {
        sleep(duration).await;
    }
}

/// Waits; a stop ends it early.
async fn sleep(duration: Duration) {
    let shared = LoopState::here();
    let after_ns = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    let deadline_ns = monotonic_ns().saturating_add(after_ns);
    Sleep {
        shared,
        deadline_ns,
        timer: None,
    }
    .await;
}

struct Sleep {
    shared: Rc<LoopState>,
    deadline_ns: i64,
    timer: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let shared = Rc::clone(&self.shared);
        let mut timers = shared.timers.borrow_mut();
        match self.timer {
            None => {
                self.timer = Some(timers.add(self.deadline_ns, context.waker()));
                Poll::Pending
            }
            Some(timer) if timers.is_pending(timer) => Poll::Pending,
            Some(_) => Poll::Ready(()),
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            self.shared.timers.borrow_mut().cancel(timer);
        }
    }
}

#[cfg(test)]
mod tests;
