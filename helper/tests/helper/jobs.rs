//! Jobs: runs that nobody has to be there for.

use boxery_wire::{
    End, FromPorts, FromRun, Job, JobState, Outcome, Reply, Request, Run, RunId, Whose, Why,
};

use crate::support::{self, Helper, Home, bash, eventually};

async fn start(helper: &Helper, text: &str) -> RunId {
    let request = Run {
        job: true,
        session: "agent-1".to_owned(),
        ..bash(text)
    };
    let run = request.run;
    let (reply, _) = helper.ask(&Request::Run(Box::new(request))).await;
    assert_eq!(reply, Reply::Started);
    run
}

async fn list(helper: &Helper) -> Vec<Job> {
    match helper.ask(&Request::Jobs).await.0 {
        Reply::Jobs(jobs) => jobs,
        other => panic!("{other:?}"),
    }
}

async fn tail(helper: &Helper, run: RunId, follow: bool) -> (Vec<u8>, u64, Option<End>) {
    let (reply, mut talk) = helper.ask(&Request::Tail { run, follow }).await;
    assert_eq!(reply, Reply::Started);
    let (mut stdout, mut skipped, mut last) = (Vec::new(), 0, None);
    while let Some(message) = talk.next::<FromRun>().await {
        match message {
            FromRun::Stdout(bytes) => stdout.extend(bytes.0),
            FromRun::Skipped(bytes) => skipped += bytes,
            FromRun::End(end) => last = Some(end),
            other => panic!("{other:?}"),
        }
    }
    (stdout, skipped, last)
}

#[tokio::test]
async fn a_job_survives_its_connection_and_keeps_output_and_status() {
    let home = Home::new();
    let helper = home.connect().await;
    let fifo = home.path().join("go");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
    let run = start(&helper, "echo one; read -t 300 <> go; echo two; exit 6").await;
    helper.kill().await;
    let helper = home.connect().await;
    let jobs = list(&helper).await;
    assert_eq!(
        (jobs.len(), jobs[0].run, jobs[0].state),
        (1, run, JobState::Running)
    );
    assert_eq!(
        (&*jobs[0].session, &*jobs[0].argv[0]),
        ("agent-1", &b"bash"[..])
    );
    let mut first = Vec::new();
    while first.is_empty() {
        first = tail(&helper, run, false).await.0;
    }
    assert_eq!(first, b"one\n");
    let request = Request::Wait { run };
    let wait = helper.ask(&request);
    let follow = tail(&helper, run, true);
    let go = async {
        let mut go = std::fs::File::options().write(true).open(&fifo).unwrap();
        std::io::Write::write_all(&mut go, b"\n").unwrap();
    };
    let ((reply, _), (stdout, skipped, end), ()) = tokio::join!(wait, follow, go);
    let want = End {
        outcome: Outcome::Exited(6),
        background: 0,
    };
    assert_eq!(reply, Reply::Ended(want));
    assert_eq!(
        (stdout.as_slice(), skipped, end),
        (&b"one\ntwo\n"[..], 0, Some(want))
    );
    // Also when nobody of it is left.
    let control = home.run(run).join("control");
    eventually("the supervisor's end", || !control.exists()).await;
    let helper = home.connect().await;
    assert_eq!(
        list(&helper).await[0].state,
        JobState::Ended(Outcome::Exited(6))
    );
    assert_eq!(
        tail(&helper, run, true).await,
        (b"one\ntwo\n".to_vec(), 0, Some(want))
    );
    let (reply, _) = helper.ask(&Request::Wait { run }).await;
    assert_eq!(reply, Reply::Ended(want));
}

#[tokio::test]
async fn a_job_that_is_stopped_leaves_nobody() {
    let home = Home::new();
    let helper = home.connect().await;
    let run = start(
        &helper,
        "setsid sleep 300 & trap '' TERM; while :; do sleep 1; done",
    )
    .await;
    let (reply, _) = helper.ask(&Request::Stop { run }).await;
    let want = End {
        outcome: Outcome::Cancelled(Why::Asked),
        background: 0,
    };
    assert_eq!(reply, Reply::Ended(want));
    assert!(support::left(run).is_empty());
}

#[tokio::test]
async fn a_long_output_is_kept_by_its_head_and_tail() {
    let home = Home::new();
    let helper = home.connect().await;
    let run = start(&helper, "seq 1 12000000").await;
    let (reply, _) = helper.ask(&Request::Wait { run }).await;
    assert!(matches!(reply, Reply::Ended(_)), "{reply:?}");
    let (stdout, skipped, end) = tail(&helper, run, false).await;
    assert!(stdout.starts_with(b"1\n2\n3\n") && stdout.ends_with(b"\n11999999\n12000000\n"));
    assert!(
        skipped > 50 << 20 && stdout.len() < 30 << 20,
        "{skipped} {}",
        stdout.len()
    );
    assert_eq!(end.map(|end| end.outcome), Some(Outcome::Exited(0)));
}

#[tokio::test]
async fn a_port_is_listed_while_its_run_listens() {
    let home = Home::new();
    let helper = home.connect().await;
    let server = "import signal, socket\n\
        s = socket.create_server((\"127.0.0.1\", 0))\n\
        print(s.getsockname()[1], flush=True)\n\
        c, _ = s.accept()\n\
        c.sendall(c.recv(100).upper())\n\
        c.close()\n\
        signal.pause()";
    let run = start(&helper, &format!("exec python3 -c '{server}'")).await;
    let mut line = Vec::new();
    while line.is_empty() {
        line = tail(&helper, run, false).await.0;
    }
    let port: u16 = String::from_utf8(line).unwrap().trim().parse().unwrap();
    let Reply::Ports(ports) = helper.ask(&Request::Ports).await.0 else {
        panic!("ports are listed")
    };
    let session = "agent-1".to_owned();
    assert_eq!(ports, [boxery_wire::Port { port, run, session }]);
    let (reply, talk) = helper.ask(&Request::Forward { port, whose: None }).await;
    assert_eq!(reply, Reply::Started);
    talk.stream.send(b"hello".to_vec()).await.unwrap();
    let mut answer = Vec::new();
    while let Some(bytes) = talk.stream.recv().await.unwrap() {
        answer.extend(bytes);
    }
    assert_eq!(answer, b"HELLO");
    helper.ask(&Request::Stop { run }).await;
    assert_eq!(
        helper.ask(&Request::Ports).await.0,
        Reply::Ports(Vec::new())
    );
    let (reply, _) = helper.ask(&Request::Forward { port, whose: None }).await;
    assert_eq!(reply, Reply::Failed(boxery_wire::Failure::Refused));
}

#[tokio::test]
async fn who_watches_a_session_hears_of_its_ports_and_of_no_others() {
    let home = Home::new();
    let helper = home.connect().await;
    let server = "import signal, socket\n\
        s = socket.create_server((\"127.0.0.1\", 0))\n\
        print(s.getsockname()[1], flush=True)\n\
        signal.pause()";
    let text = format!("exec python3 -c '{server}'");
    // Of nobody's, of the same user's, and of the session's.
    let foreign = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let foreign = foreign.local_addr().unwrap().port();
    let mut other = bash(&text);
    (other.job, other.session) = (true, "agent-2".to_owned());
    let other_run = other.run;
    helper.ask(&Request::Run(Box::new(other))).await;
    let run = start(&helper, &text).await;
    let port = async |run| {
        let mut line = Vec::new();
        while line.is_empty() {
            line = tail(&helper, run, false).await.0;
        }
        String::from_utf8(line)
            .unwrap()
            .trim()
            .parse::<u16>()
            .unwrap()
    };
    let (own, others) = (port(run).await, port(other_run).await);

    let whose = Whose::Session("agent-1".to_owned());
    let watched = Request::WatchPorts {
        whose: whose.clone(),
    };
    let (reply, mut talk) = helper.ask(&watched).await;
    assert_eq!(reply, Reply::Started);
    let session = "agent-1".to_owned();
    let now = FromPorts::Now(vec![boxery_wire::Port {
        port: own,
        run,
        session,
    }]);
    assert_eq!(talk.next::<FromPorts>().await, Some(now));
    for (port, want) in [
        (own, Reply::Started),
        (others, Reply::Failed(boxery_wire::Failure::Refused)),
        (foreign, Reply::Failed(boxery_wire::Failure::Refused)),
    ] {
        let whose = Some(whose.clone());
        let (reply, _talk) = helper.ask(&Request::Forward { port, whose }).await;
        assert_eq!(reply, want, "{port}");
    }
    helper.ask(&Request::Stop { run }).await;
    // The socket may be seen to be gone before the run is.
    let mut last = talk.next::<FromPorts>().await;
    if last == Some(FromPorts::Now(Vec::new())) {
        last = talk.next::<FromPorts>().await;
    }
    assert_eq!(last, Some(FromPorts::Over));
    assert_eq!(talk.next::<FromPorts>().await, None);
    helper.ask(&Request::Stop { run: other_run }).await;
}
