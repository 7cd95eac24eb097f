//! Bytes that nobody sane would send: an error or silence, never a panic, never
//! more memory than was promised.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of a test: what can't be fed fails it"
)]

use boxery_wire::{
    Connection, Decoder, FromRun, Item, Reply, Request, Side, Taken, ToRun, WireError, encode,
};
use proptest::prelude::*;
use tokio::io::{AsyncWriteExt as _, duplex, split};

/// Frames that are almost right.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    (
        0_u8..8,
        0_u32..6,
        prop::collection::vec(any::<u8>(), 0..40),
        any::<bool>(),
    )
        .prop_map(|(kind, stream, payload, honest)| {
            let length = if honest {
                payload.len()
            } else {
                payload.len() + 1
            };
            let mut bytes = vec![kind];
            bytes.extend(&u32::try_from(length).unwrap_or(0).to_le_bytes()[..3]);
            bytes.extend(stream.to_le_bytes());
            bytes.extend(payload);
            bytes
        })
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..400),
        prop::collection::vec(frame(), 0..40).prop_map(|frames| frames.concat()),
    ]
}

/// Feed one end and use whatever streams it accepts; gives why it ended.
fn feed(side: Side, bytes: &[u8]) -> WireError {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (mut other, this) = duplex(1 << 16);
        let (reader, writer) = split(this);
        let (connection, drive) = Connection::new(side, reader, writer);
        other.write_all(bytes).await.unwrap();
        other.shutdown().await.unwrap();
        let serve = async {
            while let Ok(stream) = connection.accept().await {
                while let Ok(Some(bytes)) = stream.recv().await {
                    if stream.send(bytes).await.is_err() {
                        break;
                    }
                }
            }
        };
        let (end, ()) = tokio::join!(drive, serve);
        end
    })
}

proptest! {
    #[test]
    fn any_frames_end_the_connection_in_order(bytes in bytes(), laptop in any::<bool>()) {
        let side = if laptop { Side::Laptop } else { Side::Vm };
        let end = feed(side, &bytes);
        prop_assert!(matches!(end, WireError::Closed | WireError::Protocol(_)), "{end:?}");
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error(mut bytes in bytes(), length in 0_u8..60) {
        bytes.splice(0..0, [length, 0, 0, 0]);
        macro_rules! decode {
            ($($kind:ty),*) => {$(
                let mut decoder = Decoder::default();
                decoder.push(&bytes);
                while let Ok(Some(message)) = decoder.message::<$kind>() {
                    // What was understood can be said again.
                    let again = encode(&message).unwrap();
                    let mut decoder = Decoder::default();
                    decoder.push(&again);
                    prop_assert_eq!(decoder.message::<$kind>().unwrap(), Some(message));
                }
            )*};
        }
        decode!(Request, Reply, ToRun, FromRun, Item, Taken);
    }
}
