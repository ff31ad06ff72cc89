//! The loop with real sockets.

use std::cell::Cell;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::unix::net::UnixListener;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

use super::*;

/// All that the kernel offers; what each test shows holds for each.
const INTERFACES: [Interface; 3] = [Interface::Epoll, Interface::IoUring, Interface::Blocking];

const LONG: Duration = Duration::from_hours(1);

/// A server on a Unix socket that answers each connection with its bytes, doubled.
fn doubling() -> (tempfile::TempDir, Address) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.expect("a connection");
            thread::spawn(move || {
                let mut bytes = vec![0; 65_536];
                while let Ok(count @ 1..) = client.read(&mut bytes) {
                    let twice = bytes[..count].repeat(2);
                    if client.write_all(&twice).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (directory, Address::Socket(path))
}

async fn exchange(address: Address, bytes: Vec<u8>) -> io::Result<usize> {
    let mut socket = Socket::connect(&address, LONG).await?;
    let mut answer = Vec::new();
    // Neither side reads while it writes, so no more is under way than the sockets hold.
    for chunk in bytes.chunks(50_000) {
        let before = answer.len();
        socket.send(chunk).await?;
        while answer.len() < before + 2 * chunk.len() {
            socket.receive(&mut answer).await?;
        }
    }
    Ok(answer.len())
}

#[test]
fn many_sockets_are_served_by_one_thread() {
    for interface in INTERFACES {
        let (_directory, address) = doubling();
        let received = Rc::new(Cell::new(0));
        let tasks: Vec<_> = (1..=200)
            .map(|number: usize| {
                let (address, received) = (address.clone(), Rc::clone(&received));
                async move {
                    let count = exchange(address, vec![7; number * 10])
                        .await
                        .expect("answered");
                    received.set(received.get() + count);
                }
            })
            .collect();
        let load = run_by(tasks, &Stop::default(), interface).expect("a loop");
        assert_eq!(
            received.get(),
            (1..=200).map(|number| number * 20).sum::<usize>()
        );
        assert!(load.busy_ns > 0, "{load:?}"); // on a crowded machine it is never idle
    }
}

#[test]
fn an_answer_larger_than_all_buffers_arrives_whole() {
    for interface in INTERFACES {
        let (_directory, address) = doubling();
        let count = block_on_by(exchange(address, vec![1; 3_000_000]), interface).expect("a loop");
        assert_eq!(count.expect("answered"), 6_000_000);
    }
}

#[test]
fn a_send_that_finds_no_room_waits_for_it() {
    for interface in INTERFACES {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).expect("a socket");
        let slow = thread::spawn(move || {
            let (mut client, _) = listener.accept().expect("a connection");
            thread::sleep(Duration::from_millis(50));
            let mut bytes = Vec::new();
            client.read_to_end(&mut bytes).expect("bytes");
            bytes.len()
        });
        let sent = block_on_by(
            async {
                let mut socket = Socket::connect(&Address::Socket(path), LONG).await?;
                socket.send(&vec![3; 5_000_000]).await
            },
            interface,
        );
        sent.expect("a loop").expect("sent");
        assert_eq!(slow.join().expect("it counts"), 5_000_000);
    }
}

#[test]
fn a_server_that_hangs_is_given_up_and_one_that_closes_is_told() {
    for interface in INTERFACES {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let address = Address::tcp("127.0.0.1", port);
        let closing = thread::spawn(move || {
            let first = listener.accept().expect("a connection");
            let (mut second, _) = listener.accept().expect("a connection");
            second.write_all(b"bye").expect("written");
            first
        });
        block_on_by(
            async {
                let mut hanging = Socket::connect(&address, Duration::from_millis(30))
                    .await
                    .expect("connected");
                let mut buffer = Vec::new();
                let error = hanging
                    .receive(&mut buffer)
                    .await
                    .expect_err("nothing comes");
                assert_eq!(error.kind(), ErrorKind::TimedOut);
                let mut closed = Socket::connect(&address, LONG).await.expect("connected");
                closed.receive(&mut buffer).await.expect("its last words");
                assert_eq!(buffer, b"bye");
                let error = closed.receive(&mut buffer).await.expect_err("it is gone");
                assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
            },
            interface,
        )
        .expect("a loop");
        drop(closing.join());
    }
}

#[test]
fn a_name_is_asked_for_its_addresses_once() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut address = Address::tcp("127.0.0.1", port);
    let connect = |address: &Address| {
        block_on(async { Socket::connect(address, LONG).await.map(drop) }).expect("a loop")
    };
    connect(&address).expect("connected");
    let Address::Tcp { host, .. } = &mut address else {
        panic!("a port");
    };
    *host = "name.invalid".into(); // which no resolver knows (RFC 6761)
    connect(&address).expect("connected again");
}

#[test]
fn a_port_where_nobody_listens_refuses() {
    for interface in INTERFACES {
        // Bound until the end: nobody else can listen there.
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let bound = getsockname(&socket).expect("an address");
        let port = SocketAddrV4::try_from(bound).expect("IPv4").port();
        let address = Address::tcp("127.0.0.1", port);
        let refused = block_on_by(Socket::connect(&address, LONG), interface).expect("a loop");
        assert_eq!(
            refused.expect_err("nobody listens").kind(),
            ErrorKind::ConnectionRefused
        );
    }
}

#[test]
fn a_stop_ends_a_pause_and_an_abandoned_loop_ends_whatever_its_tasks_wait_for() {
    for interface in INTERFACES {
        let stop = Arc::new(Stop::default());
        let finished = Rc::new(Cell::new(false));
        let (has_ended, ended) = std::sync::mpsc::channel();
        let task = {
            let (stop, finished) = (Arc::clone(&stop), Rc::clone(&finished));
            async move {
                pause(LONG, &stop).await;
                finished.set(true);
                has_ended.send(()).expect("someone waits");
                std::future::pending::<()>().await;
            }
        };
        let saying = thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                stop.stop();
                // Abandoned even where the pause goes on, which is found below.
                let _ = ended.recv_timeout(Duration::from_mins(1));
                stop.abandon();
            }
        });
        run_by(vec![task], &stop, interface).expect("a loop");
        assert!(finished.get());
        saying.join().expect("it spoke");
    }
}

/// Pauses of 600, 300 and 900 µs, in the order they ended; `None` if the machine let one begin too late to compare.
fn ended_in_order(interface: Interface) -> Option<Vec<u64>> {
    let order = Rc::new(std::cell::RefCell::new(Vec::new()));
    let begun = Rc::new(std::cell::RefCell::new(Vec::new()));
    let stop = Arc::new(Stop::default());
    // The longest begins last: nobody tells how late that was.
    let tasks: Vec<_> = [600, 300, 900]
        .into_iter()
        .map(|microseconds| {
            let (order, begun, stop) = (Rc::clone(&order), Rc::clone(&begun), Arc::clone(&stop));
            async move {
                begun.borrow_mut().push(Instant::now());
                pause(Duration::from_micros(microseconds), &stop).await;
                order.borrow_mut().push(microseconds);
            }
        })
        .collect();
    run_by(tasks, &stop, interface).expect("a loop");
    let begun = begun.borrow();
    let apart = begun.iter().max()?.duration_since(*begun.iter().min()?);
    (apart < Duration::from_micros(250)).then(|| order.borrow().clone())
}

#[test]
fn pauses_shorter_than_a_millisecond_end_and_end_in_order() {
    for interface in INTERFACES {
        let undisturbed = (0..200).find_map(|_| ended_in_order(interface));
        assert_eq!(undisturbed, Some(vec![300, 600, 900]), "{interface:?}");
    }
}

#[test]
fn a_socket_that_is_dropped_while_it_waits_is_closed_and_its_last_words_are_sent() {
    for interface in INTERFACES {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).expect("a socket");
        let listening = thread::spawn(move || {
            let heard = listener.incoming().take(2).map(|client| {
                let mut bytes = Vec::new();
                client
                    .expect("a connection")
                    .read_to_end(&mut bytes)
                    .expect("an end");
                bytes
            });
            heard.collect::<Vec<_>>()
        });
        let address = Address::Socket(path);
        let waits = async {
            let limit = Duration::from_millis(1);
            let mut waiting = Socket::connect(&address, limit).await?;
            waiting.send(b"hello").await?;
            let late = waiting.receive(&mut Vec::new()).await;
            assert_eq!(late.expect_err("silence").kind(), ErrorKind::TimedOut);
            waiting.farewell(b" and good-bye");
            drop(waiting);
            let mut leaving = Socket::connect(&address, LONG).await?;
            leaving.send(b"bye").await?;
            leaving.farewell(b", all");
            Ok::<_, io::Error>(())
        };
        block_on_by(waits, interface)
            .expect("a loop")
            .expect("sent");
        let heard = listening.join().expect("it listened");
        assert_eq!(
            heard,
            [b"hello and good-bye".to_vec(), b"bye, all".to_vec()]
        );
    }
}

#[test]
fn a_server_that_is_gone_is_told_whatever_was_sent_to_it() {
    for interface in INTERFACES {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).expect("a socket");
        let reader = async {
            let mut socket = Socket::connect(&Address::Socket(path), LONG).await?;
            drop(listener.accept()?);
            socket.send(b"is anybody there").await?;
            socket.receive(&mut Vec::new()).await
        };
        let error = block_on_by(reader, interface).expect("a loop");
        assert_eq!(error.expect_err("gone").kind(), ErrorKind::BrokenPipe);
    }
}

#[test]
fn what_a_server_said_before_it_closed_is_received_before_its_end_is_told() {
    for interface in INTERFACES {
        // What a server leaves unread it answers with a reset.
        for leaves_unread in [false, true] {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let path = directory.path().join("socket");
            let listener = UnixListener::bind(&path).expect("a socket");
            let mut said = Vec::new();
            let reader = async {
                let mut socket = Socket::connect(&Address::Socket(path), LONG).await?;
                let (mut server, _) = listener.accept()?;
                if leaves_unread {
                    socket.send(&vec![0; 50_000]).await?;
                }
                server.write_all(b"I am leaving")?;
                drop(server);
                loop {
                    socket.send(b"is anybody there").await?;
                    socket.receive(&mut said).await?;
                }
            };
            let reader: io::Result<()> = block_on_by(reader, interface).expect("a loop");
            let kind = reader.expect_err("gone").kind();
            assert!(is_end(kind), "{interface:?}: {kind}");
            assert_eq!(said, b"I am leaving", "{interface:?}");
        }
    }
}

fn is_end(kind: ErrorKind) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionReset};
    matches!(kind, BrokenPipe | ConnectionReset)
}
