use tidemill::Runtime;
fn rss() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096 >> 20
}
fn main() {
    let device = std::env::args().nth(1).unwrap();
    let what = std::env::args().nth(2).unwrap();
    let b = Runtime::builder().device(device.as_str()).fold_elements_max(0);
    let rt = b.start_blocking().unwrap();
    let s = rt.session("x").open();
    if what == "rss" {
        println!("start {} MB", rss());
        let data = vec![1.0f32; 1 << 20];
        let xs: Vec<_> = (0..50).map(|_| s.from_slice(&data, [1 << 20, 1]).unwrap() + 1.0).collect();
        for x in &xs {
            futures::executor::block_on(x.eval()).unwrap();
        }
        let all: Vec<_> = xs.iter().map(|x| x.gather_blocking::<f32>().unwrap().as_slice().to_vec()).collect();
        println!("burst {} MB", rss());
        drop((xs, all, data));
        s.flush();
        for _ in 0..16 {
            std::thread::sleep(std::time::Duration::from_secs(1));
            let st = rt.stats();
            println!(
                "rss {} MB, pooled {} MB, returned {} MB, resident {} MB",
                rss(),
                st.bytes_pooled_now >> 20,
                st.bytes_returned >> 20,
                st.bytes_resident_now >> 20
            );
        }
        return;
    }
    if what == "load" {
        let sessions: Vec<_> = (0..5000).map(|i| rt.session(&i.to_string()).open()).collect();
        let g: Vec<_> =
            sessions.iter().map(|s| ((s.rand::<f32>([1 << 16, 1]) * 2.0).exp()).sum(..).item::<f32>()).collect();
        sessions.iter().for_each(|s| s.flush());
        std::thread::sleep(std::time::Duration::from_millis(50));
        let t = std::time::Instant::now();
        if std::env::args().nth(3).is_some() {
            futures::executor::block_on(rt.shutdown()).unwrap();
            println!("shutdown {:?}", t.elapsed());
        }
        drop(rt);
        println!("drop {:?}", t.elapsed());
        let (mut ok, mut err) = (0, 0);
        for g in g {
            match futures::executor::block_on(g) {
                Ok(_) => ok += 1,
                Err(_) => err += 1,
            }
        }
        println!("all resolved {:?}: {ok} ok, {err} failed", t.elapsed());
        loop {
            let n = std::fs::read_dir("/proc/self/task").unwrap().count();
            if n == 1 || t.elapsed().as_secs() > 20 {
                println!("{n} threads after {:?}", t.elapsed());
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        return;
    }
    let g = (s.rand::<f32>([1 << 20, 1]) * 2.0).exp().sum(..).item::<f32>();
    s.flush();
    if what == "done" {
        futures::executor::block_on(g).unwrap();
    }
    drop(rt);
}
