//! Arrays: what they hold, what they refuse, and what they leave behind.

mod programs;

use octants::ir::{Const, Data, Scalar, TensorShape, TensorType};
use octants::{Arch, Error, HostQueue, Invocation, NdArray};
use programs::{NEVER, compile, filled, session, values};

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn ten_thousand_arrays_come_and_go_without_a_trace() {
    let session = session(Arch::Cpu);
    // Small ones come from the allocator, large ones are mappings of their own.
    let round = || {
        for (count, bytes) in [(4800, 1 << 12), (200, 5 << 20)] {
            for _ in 0..count {
                let array = filled(&session, Scalar::F32, &[bytes / 4], 1.5);
                assert_eq!(array.get(&[-1], HostQueue::default()).unwrap(), [Const::f32(1.5)]);
            }
        }
    };
    round();
    let before = resident_bytes();
    round();
    assert_eq!((session.live_arrays(), session.live_bytes()), (0, 0));
    let after = resident_bytes();
    assert!(after < before + (8 << 20), "resident memory grew from {before} to {after} bytes");
}

#[test]
fn an_array_that_cannot_be_is_an_error_and_the_session_goes_on() {
    for arch in [Arch::Cpu, Arch::Reference] {
        let session = session(arch);
        let big = NdArray::new(&session, Scalar::F64.into(), &[1 << 20, 1 << 20]);
        assert!(matches!(big, Err(Error::OutOfMemory { bytes }) if bytes == 8 << 40), "{big:?}");
        let huge = NdArray::new(&session, Scalar::F64.into(), &[i32::MAX; 3]);
        assert!(matches!(huge, Err(Error::OutOfMemory { .. })));
        let negative = NdArray::new(&session, Scalar::F64.into(), &[4, -1]).unwrap_err();
        assert_eq!(negative.to_string(), "[4, -1] is not a valid shape for ndarray");
        assert_eq!((session.live_arrays(), session.live_bytes()), (0, 0));
        assert_eq!(values(&filled(&session, Scalar::F64, &[3], 2.0)), [2.0; 3]);
    }
}

#[test]
fn arrays_of_vectors_keep_their_entries_innermost() {
    let session = session(Arch::Cpu);
    let vector = Data::Tensor(TensorType { elem: Scalar::F32, shape: TensorShape::Vector(3) });
    let array = NdArray::new(&session, vector, &[4, 100_000]).unwrap();
    let entries = [1.0, 2.0, 3.0].map(Const::f32);
    array.fill(&entries, HostQueue::default()).unwrap();
    assert_eq!(array.get(&[3, 99_999], HostQueue::default()).unwrap(), entries);
    array.set(&[1, 2], &[4.0, 5.0, 6.0].map(Const::f32), HostQueue::default()).unwrap();
    let mut bytes = vec![0; array.bytes()];
    array.read(&mut bytes, HostQueue::default()).unwrap();
    let float = |n: usize| f32::from_le_bytes(bytes[4 * n..4 * n + 4].try_into().unwrap());
    let at = 3 * (100_000 + 2);
    assert_eq!(
        [float(at - 1), float(at), float(at + 1), float(at + 2), float(at + 3)],
        [3.0, 4.0, 5.0, 6.0, 1.0]
    );

    let copy = NdArray::new(&session, vector, &[4, 100_000]).unwrap();
    copy.copy_from(&array, HostQueue::default()).unwrap();
    let mut other = vec![0; copy.bytes()];
    copy.read(&mut other, HostQueue::default()).unwrap();
    assert!(bytes == other);
    let refused = |result: Result<(), Error>| result.unwrap_err().to_string();
    assert_eq!(
        refused(array.fill(&[Const::f64(1.0)], HostQueue::default())),
        "the array holds f32, but the value is f64"
    );
    assert_eq!(
        refused(array.fill(&entries[..2], HostQueue::default())),
        "an element has 3 entries, but the value has 2"
    );
    assert_eq!(
        refused(array.get(&[0], HostQueue::default()).map(drop)),
        "2d ndarray indexed with 1d indices"
    );
    assert_eq!(
        refused(array.get(&[0, 100_000], HostQueue::default()).map(drop)),
        "index 100000 is out of bounds for axis 1 of size 100000"
    );
    assert_eq!(refused(array.write(&[0; 3], HostQueue::default())), "the array has 4800000 bytes, not 3");
}

#[test]
fn sessions_and_threads_live_side_by_side() {
    let shared = session(Arch::Cpu);
    let saxpy = compile(&shared, programs::saxpy());
    std::thread::scope(|scope| {
        for thread in 0..8_i16 {
            let (shared, saxpy) = (&shared, &saxpy);
            scope.spawn(move || {
                let own = session(Arch::Cpu);
                let own_saxpy = compile(&own, programs::saxpy());
                for round in 0..30_i32 {
                    let n = 1000 + 7000 * (round % 5);
                    for (session, kernel) in [(shared, saxpy), (&own, &own_saxpy)] {
                        let x = filled(session, Scalar::F32, &[n], f64::from(thread));
                        let y = filled(session, Scalar::F32, &[n], f64::from(round));
                        let invocation = Invocation::new(kernel).scalar(&[Const::f32(10.0)]).unwrap();
                        invocation.array(&x).unwrap().array(&y).unwrap().launch(&NEVER).unwrap();
                        let expected = 10.0 * f64::from(thread) + f64::from(round);
                        assert!(values(&y).iter().all(|&v| v == expected));
                    }
                }
                own.reset();
            });
        }
    });
    assert_eq!(shared.live_arrays(), 0);
}
