//! Tests of gathers: how values are returned, under which executors.

use crate::array::fake::FakeRing;
use crate::array::*;
use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::graph::{DType, Op};
use crate::host_buffer::HostBuffer;
use futures::executor::block_on;
use std::future::IntoFuture;

#[test]
fn handles_and_gathers_can_move_between_threads() {
    fn send_sync<T: Send + Sync + 'static>() {}
    fn send<T: Send + 'static>() {}
    send_sync::<Array>();
    send_sync::<Session>();
    send_sync::<Runtime>();
    send_sync::<HostArray<f32>>();
    send::<Gather<f32>>();
    send::<GatherAll<f32>>();
    send::<Item<u8>>();
}

#[test]
fn a_gather_yields_the_delivered_elements_and_names_op_and_line_of_failures() {
    let ring = FakeRing::unfolded();
    let s = ring.session("yield");
    let x = s.full(1.5f32, [2, 2]);
    let gather = x.gather::<f32>();
    ring.deliver(0, HostBuffer::from_slice(&[1.0f32, 2.0, 3.0, 4.0]));
    let host = block_on(gather).unwrap();
    assert_eq!((host[[1, 0]], host.shape().dims()), (2.0, &[2, 2][..]));
    let doubled = &x + &x;
    let line = line!() - 1;
    let gather = doubled.gather::<f32>();
    ring.fail(1, Error::new(ErrorKind::DeviceLost, "the device is gone"));
    let error = block_on(gather).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::DeviceLost, Some("add")));
    assert_eq!(error.location().unwrap().line(), line);
    assert!(error.location().unwrap().file().ends_with("gathers.rs"));
}

#[test]
fn blocking_inside_of_an_async_context_is_a_typed_error() {
    let ring = FakeRing::new(Config::default());
    let s = ring.session("block");
    let x = s.ones::<f32>([2, 2]);
    assert_eq!(x.gather_blocking::<f32>().unwrap().as_slice(), [1.0; 4]);
    let inside = || x.gather_blocking::<f32>().unwrap_err().kind();
    assert_eq!(block_on(async { inside() }), ErrorKind::WouldBlock);
    let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(tokio.block_on(async { inside() }), ErrorKind::WouldBlock);
    assert_eq!(
        tokio.block_on(async { Runtime::builder().device("host").start_blocking().unwrap_err().kind() }),
        ErrorKind::WouldBlock
    );
    assert_eq!(x.gather_blocking::<f32>().unwrap().len(), 4, "outside again");
}

#[tokio::test]
async fn a_current_thread_executor_drives_joined_gathers() {
    let ring = FakeRing::unfolded();
    let server = ring.answer_with_zeros();
    let s = ring.session("tokio");
    let x = s.rand::<f32>([100, 1]);
    let head = x.slice((0..10, 0)).gather::<f32>();
    let mean = x.mean(..).item::<f32>();
    let (head, mean) = tokio::try_join!(head, mean).unwrap();
    assert_eq!((head.len(), mean), (10, 0.0));
    let any = (&x).into_future().await.unwrap();
    assert_eq!((any.dtype(), any.shape().dims()), (DType::F32, &[100, 1][..]));
    let reused = x.gather_into(Vec::<f32>::with_capacity(100)).await.unwrap();
    assert_eq!(reused.len(), 100);
    assert_eq!(x.gather_view::<f32>().await.unwrap().len(), 100);
    assert_eq!(x.gather_as::<f64>().await.unwrap().len(), 100);
    s.ready().await;
    drop((x, s, ring));
    server.join().unwrap();
}

#[tokio::test]
async fn a_stream_yields_each_gather_with_its_place() {
    use futures::StreamExt;
    let ring = FakeRing::unfolded();
    let s = ring.session("stream");
    let arrays: Vec<Array> = (0..3).map(|i| s.full(i as f32, [2, 1])).collect();
    let mut stream = gather_all::<f32>(&arrays);
    for gather in [2, 0, 1] {
        ring.deliver(gather, HostBuffer::from_slice(&[gather as f32; 2]));
    }
    let mut seen = Vec::new();
    while let Some((i, result)) = stream.next().await {
        assert_eq!(result.unwrap()[0], i as f32);
        seen.push(i);
    }
    seen.sort();
    assert_eq!(seen, [0, 1, 2]);
}

#[tokio::test]
async fn nonzero_awaits_its_count() {
    let ring = FakeRing::unfolded();
    let s = ring.session("nonzero");
    let x = s.rand::<f32>([10, 10]);
    let found = x.nonzero();
    drop(x);
    s.flush();
    // The running count is the first gather, since the op that finds the indices reads it again. The test does not wait
    // for it.
    ring.deliver(1, HostBuffer::from_slice(&[7u32]));
    let found = found.await.unwrap();
    assert_eq!((found.shape().unwrap().dims(), found.dtype().unwrap()), (&[7, 1][..], DType::U32));
    s.flush();
    let names: Vec<&str> = ring.nodes().iter().map(|n| n.op.name()).collect();
    assert_eq!(names, ["rand", "ne", "reshape", "cast", "cumsum", "slice", "nonzero"]);
    let tiny = FakeRing::new(Config::default());
    let s = tiny.session("tiny");
    let none = s.zeros::<f32>([3, 1]).nonzero().await.unwrap();
    assert_eq!(none.shape().unwrap().dims(), [0, 1]);
}

#[test]
fn an_upload_hands_its_memory_over_without_a_copy() {
    let ring = FakeRing::unfolded();
    let s = ring.session("upload");
    let mut upload = s.upload::<f32>([100, 1]).unwrap();
    upload.write(&[1.0; 60]).unwrap();
    assert_eq!(upload.write(&[1.0; 60]).unwrap_err().kind(), ErrorKind::Shape);
    upload.as_mut_slice()[99] = 9.0;
    let memory = upload.as_mut_slice().as_ptr();
    let x = upload.finish();
    s.flush();
    let nodes = ring.nodes();
    let Op::Source(data) = &nodes[0].op else { panic!("a source") };
    let data = data.as_slice::<f32>().unwrap();
    assert_eq!((data.as_ptr(), data[59], data[60], data[99]), (memory, 1.0, 0.0, 9.0));
    drop(x);
}
