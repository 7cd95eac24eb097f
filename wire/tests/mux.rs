//! Two ends over a pipe in memory: what each promise of the streams says.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of a test: what can't be sent fails it"
)]

use std::time::Duration;

use boxery_wire::{
    BUILD, Blob, Connection, Decoder, FromRun, MAGIC, RunId, Side, Stream, ToRun, WireError,
    encode, greet, mux,
};
use bytes::Bytes;
use rstest::rstest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex, split};
use tokio::time::timeout;

type Ends = (Connection, Connection);

fn pair(pipe: usize) -> Ends {
    let (laptop, vm) = duplex(pipe);
    (start(Side::Laptop, laptop), start(Side::Vm, vm))
}

fn start(side: Side, pipe: DuplexStream) -> Connection {
    let (reader, writer) = split(pipe);
    let (connection, drive) = Connection::new(side, reader, writer);
    tokio::spawn(drive);
    connection
}

async fn open(ends: &Ends) -> (Stream, Stream) {
    let laptop = ends.0.open().unwrap();
    (laptop, ends.1.accept().await.unwrap())
}

async fn read_all(stream: &Stream) -> Result<Vec<u8>, WireError> {
    let mut bytes = Vec::new();
    while let Some(more) = stream.recv().await? {
        bytes.extend(more);
    }
    Ok(bytes)
}

#[tokio::test]
async fn bytes_arrive_in_order_both_ways() {
    let ends = pair(1000);
    let (laptop, vm) = open(&ends).await;
    let up: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let down: Vec<u8> = up.iter().rev().copied().collect();
    let send = async |stream: &Stream, bytes: &[u8]| {
        for piece in bytes.chunks(100_001) {
            stream.send(Bytes::copy_from_slice(piece)).await.unwrap();
        }
        stream.finish();
    };
    let ((), (), at_vm, at_laptop) = tokio::join!(
        send(&laptop, &up),
        send(&vm, &down),
        read_all(&vm),
        read_all(&laptop)
    );
    assert!(at_vm.unwrap() == up);
    assert!(at_laptop.unwrap() == down);
}

#[tokio::test]
async fn a_stream_nobody_reads_stops_its_own_sender_and_no_other() {
    let ends = pair(64 * 1024);
    let (_stalled, source) = open(&ends).await;
    let chunk = Bytes::from(vec![7; 64 * 1024]);
    let flood = async {
        let mut sent = 0;
        loop {
            source.send(chunk.clone()).await.unwrap();
            sent += chunk.len();
            assert!(sent <= mux::WINDOW as usize + mux::OUTBOX + chunk.len());
        }
    };
    let others = async {
        // By now the first stream has used all of its credit.
        for _ in 0..200 {
            let (laptop, vm) = open(&ends).await;
            laptop.send(Bytes::from_static(b"true")).await.unwrap();
            assert_eq!(vm.recv().await.unwrap().unwrap(), &b"true"[..]);
            vm.send(vec![1; 300_000]).await.unwrap();
            vm.finish();
            assert_eq!(read_all(&laptop).await.unwrap().len(), 300_000);
        }
    };
    tokio::select! {
        () = flood => {}
        () = others => {}
    }
}

#[tokio::test]
async fn what_was_sent_before_the_end_arrives_though_the_sender_is_gone() {
    let ends = pair(64);
    let (laptop, vm) = open(&ends).await;
    vm.send(vec![3; 1_000_000]).await.unwrap();
    vm.finish();
    drop(vm);
    assert_eq!(read_all(&laptop).await.unwrap().len(), 1_000_000);
    let refused = laptop.send(Bytes::from_static(b"late")).await;
    assert!(matches!(refused, Err(WireError::Reset)), "{refused:?}");
}

#[tokio::test]
async fn a_stream_that_is_dropped_unfinished_is_a_reset_at_the_other_end() {
    let ends = pair(1024);
    let (laptop, vm) = open(&ends).await;
    laptop.send(Bytes::from_static(b"text")).await.unwrap();
    drop(laptop);
    let end = read_all(&vm).await;
    assert!(matches!(end, Err(WireError::Reset)), "{end:?}");
    let (laptop, vm) = open(&ends).await;
    vm.finish();
    laptop.finish();
    assert!(read_all(&vm).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_closed_pipe_ends_every_stream_after_what_had_come() {
    let ends = pair(1024);
    let (laptop, vm) = open(&ends).await;
    vm.send(Bytes::from_static(b"last")).await.unwrap();
    ends.1.ping().await.unwrap();
    ends.1.close();
    assert_eq!(laptop.recv().await.unwrap().unwrap(), &b"last"[..]);
    let end = laptop.recv().await;
    assert!(matches!(end, Err(WireError::Closed)), "{end:?}");
    assert!(ends.0.ping().await.is_err());
    assert!(ends.0.open().is_err());
}

#[tokio::test]
async fn ten_thousand_streams_one_after_another_leave_nothing() {
    let ends = pair(4096);
    for _ in 0..10_000 {
        let (laptop, vm) = open(&ends).await;
        vm.send(Bytes::from_static(b"x")).await.unwrap();
        vm.finish();
        assert_eq!(read_all(&laptop).await.unwrap(), b"x");
    }
    // Were they still there, these would be too many.
    let streams: Vec<Stream> = (0..mux::MAX_STREAMS)
        .map_while(|_| ends.0.open().ok())
        .collect();
    assert!(streams.len() > mux::MAX_STREAMS - 10, "{}", streams.len());
}

#[rstest]
#[case::unknown_kind(&[9, 0, 0, 0, 1, 0, 0, 0])]
#[case::data_of_no_stream(&[1, 1, 0, 0, 1, 0, 0, 0, 65])]
#[case::empty_data(&[0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])]
#[case::too_long(&[0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 1, 1, 0, 0, 0])]
#[case::opened_twice(&[0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0])]
#[case::stream_zero(&[0, 0, 0, 0, 0, 0, 0, 0])]
#[case::no_credit(&[0, 0, 0, 0, 1, 0, 0, 0, 4, 4, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0])]
#[case::wild_credit(&[0, 0, 0, 0, 1, 0, 0, 0, 4, 4, 0, 0, 1, 0, 0, 0, 255, 255, 255, 255])]
#[case::answer_to_nothing(&[6, 8, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0])]
#[case::finished_twice(&[0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0])]
#[tokio::test]
async fn a_frame_that_cannot_be_right_ends_the_connection(#[case] bytes: &[u8]) {
    let (mut laptop, vm) = duplex(1024);
    let (reader, writer) = split(vm);
    let (_connection, drive) = Connection::new(Side::Vm, reader, writer);
    laptop.write_all(bytes).await.unwrap();
    let end = timeout(Duration::from_secs(10), drive).await.unwrap();
    assert!(matches!(end, WireError::Protocol(_)), "{end:?}");
}

#[tokio::test]
async fn more_bytes_than_the_window_end_the_connection() {
    let (mut laptop, vm) = duplex(1 << 20);
    let (reader, writer) = split(vm);
    let (connection, drive) = Connection::new(Side::Vm, reader, writer);
    let flood = async {
        laptop.write_all(&[0, 0, 0, 0, 1, 0, 0, 0]).await.unwrap();
        let mut frame = vec![1, 0, 0, 1, 1, 0, 0, 0];
        frame.extend(vec![9; 64 * 1024]);
        while laptop.write_all(&frame).await.is_ok() {}
        std::future::pending::<()>().await;
    };
    let end = tokio::select! {
        end = drive => end,
        () = flood => unreachable!("the flood never returns"),
    };
    assert!(matches!(end, WireError::Protocol(_)), "{end:?}");
    drop(connection);
}

#[rstest]
#[case::silence(0)]
#[case::megabytes(3_000_000)]
#[tokio::test]
async fn noise_before_the_greeting_is_skipped(#[case] noise: usize) {
    let (laptop, vm) = duplex(4096);
    let noisy = async {
        let (reader, mut writer) = split(vm);
        let almost = [&MAGIC[..15], b"\0", &MAGIC[..3]].concat();
        let text: Vec<u8> = almost.iter().copied().cycle().take(noise).collect();
        writer.write_all(&text).await.unwrap();
        greet(Side::Vm, &mut BufReader::new(reader), &mut writer)
            .await
            .unwrap();
        writer.write_all(b"frames").await.unwrap();
    };
    let quiet = async {
        let (reader, mut writer) = split(laptop);
        let mut reader = BufReader::new(reader);
        greet(Side::Laptop, &mut reader, &mut writer).await.unwrap();
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"frames");
    };
    tokio::join!(noisy, quiet);
}

#[tokio::test]
async fn only_a_helper_of_this_build_is_taken() {
    let cases: [(&[u8], &str); 3] = [
        (b"bash: no such file\n", "NoGreeting"),
        (b"", "NoGreeting"),
        (MAGIC, "OtherBuild"),
    ];
    for (before, want) in cases {
        let mut text = before.to_vec();
        if want == "OtherBuild" {
            let mut other = BUILD;
            other[31] ^= 1;
            text.extend(other);
        }
        let mut reader = BufReader::new(text.as_slice());
        let error = greet(Side::Laptop, &mut reader, &mut Vec::new())
            .await
            .unwrap_err();
        assert!(format!("{error:?}").starts_with(want), "{error:?}");
    }
}

#[rstest]
#[case::zero_length(&[0, 0, 0, 0], true)]
#[case::endless(&[0, 0, 0, 255], true)]
#[case::half(&[2, 0, 0, 0, 0], false)]
#[case::no_such_variant(&[1, 0, 0, 0, 77], true)]
#[case::more_behind_it(&[3, 0, 0, 0, 1, 1, 1], true)]
#[case::longer_inside(&[3, 0, 0, 0, 0, 200, 1], true)]
fn a_message_that_cannot_be_right_is_an_error(#[case] bytes: &[u8], #[case] wrong: bool) {
    let mut decoder = Decoder::default();
    decoder.push(bytes);
    match decoder.message::<ToRun>() {
        Ok(None) => assert!(!wrong),
        Err(WireError::Protocol(_)) => assert!(wrong),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_position_counts_whole_messages() {
    let message = FromRun::Stdout(Blob(vec![0; 70_000]));
    let bytes = encode(&message).unwrap();
    let mut decoder = Decoder::default();
    decoder.push(&bytes);
    decoder.push(&bytes[..10]);
    assert_eq!(decoder.message::<FromRun>().unwrap(), Some(message));
    assert_eq!(decoder.message::<FromRun>().unwrap(), None);
    assert_eq!(decoder.position(), bytes.len() as u64);
    assert_eq!(decoder.into_rest().len(), 10);
}

#[test]
fn a_run_is_named_by_its_digits() {
    let run = RunId([0xab; 16]);
    assert_eq!(run.to_string().parse(), Ok(run));
    for wrong in [
        "",
        "ab",
        &"AB".repeat(16),
        &"+a".repeat(16),
        &"ab".repeat(17),
    ] {
        assert!(wrong.parse::<RunId>().is_err(), "{wrong}");
    }
}
