//! A link in which bytes are lost only when it is told so.

use rollyard_test_nats::Proxy;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Says everything back, for as long as the test runs.
fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut stream.try_clone().unwrap(), &mut stream);
            });
        }
    });
    port
}

fn connect(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

fn say(mut stream: &TcpStream, text: &str) -> String {
    stream.write_all(text.as_bytes()).unwrap();
    hear(stream, text.len())
}

fn hear(mut stream: &TcpStream, count: usize) -> String {
    let mut heard = vec![0; count];
    stream.read_exact(&mut heard).unwrap();
    String::from_utf8(heard).unwrap()
}

#[test]
fn bytes_go_both_ways() {
    let proxy = Proxy::start(echo());
    let stream = connect(&proxy);
    assert_eq!(say(&stream, "one"), "one");
    let large = "x".repeat(3 << 20);
    std::thread::scope(|scope| {
        scope.spawn(|| (&stream).write_all(large.as_bytes()).unwrap());
        assert_eq!(hear(&stream, large.len()), large);
    });
}

#[test]
fn cut_link_closes_connections_and_takes_no_others_until_healed() {
    let proxy = Proxy::start(echo());
    let stream = connect(&proxy);
    assert_eq!(say(&stream, "one"), "one");
    proxy.cut();
    assert!(matches!((&stream).read(&mut [0; 1]), Ok(0) | Err(_)), "the connection is open");
    assert!(matches!(connect(&proxy).read(&mut [0; 1]), Ok(0) | Err(_)), "a new connection is open");
    proxy.heal();
    assert_eq!(say(&connect(&proxy), "two"), "two");
}

#[test]
fn frozen_link_keeps_connections_and_loses_nothing() {
    let proxy = Proxy::start(echo());
    let mut stream = connect(&proxy);
    assert_eq!(say(&stream, "one"), "one");
    proxy.freeze();
    stream.write_all(b"two").unwrap();
    let mut late = connect(&proxy);
    late.write_all(b"late").unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let error = stream.read(&mut [0; 1]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    proxy.heal();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    assert_eq!(hear(&stream, 3), "two");
    assert_eq!(hear(&late, 4), "late");
    assert_eq!(say(&stream, "three"), "three");
}

#[test]
fn slow_link_delays_what_it_carries() {
    let proxy = Proxy::start(echo());
    let stream = connect(&proxy);
    proxy.slow(Duration::from_millis(100), 100_000);
    let begun = Instant::now();
    assert_eq!(say(&stream, "one"), "one");
    assert!(begun.elapsed() >= Duration::from_millis(200), "{:?}", begun.elapsed());
    // The first chunk of 50 kB goes at once, and those behind it wait for their turn.
    let begun = Instant::now();
    let text = "x".repeat(50_000);
    assert_eq!(say(&stream, &text), text);
    assert!(begun.elapsed() >= Duration::from_millis(400), "{:?}", begun.elapsed());
    proxy.heal();
    let begun = Instant::now();
    assert_eq!(say(&stream, "two"), "two");
    assert!(begun.elapsed() < Duration::from_millis(150), "{:?}", begun.elapsed());
}

#[test]
fn proxy_that_is_dropped_ends_its_connections() {
    for is_frozen in [false, true] {
        let proxy = Proxy::start(echo());
        let stream = connect(&proxy);
        assert_eq!(say(&stream, "one"), "one");
        if is_frozen {
            proxy.freeze();
            (&stream).write_all(b"two").unwrap();
        }
        drop(proxy);
        assert!(matches!((&stream).read(&mut [0; 1]), Ok(0) | Err(_)), "the connection is open");
    }
}
