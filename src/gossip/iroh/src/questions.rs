//! Questions between nodes that know each other: a protocol of its own on the endpoint (ALPN `todoke/fill/1`). One question, one
//! answer, each on a stream of its own; what they say is C++'s matter. A connection is asked one question at a time, so that a
//! peer has at most as many under way as it may have connections.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use iroh::endpoint::{Connection, RecvStream, SendStream};
use iroh::protocol::{AcceptError, ProtocolHandler};
use iroh::{Endpoint, EndpointId};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::{Kind, Listener};

type Id = [u8; 32];
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

pub const FILL_ALPN: &[u8] = b"todoke/fill/1";
/// TODOKE_IROH_QUESTION_MAX and TODOKE_IROH_ANSWER_MAX of the header.
const QUESTION_MAX: usize = 256 * 1024;
const ANSWER_MAX: usize = 4 * 1024 * 1024;
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// For all of a question to come, and for a large answer to be read.
const TRANSFER_MAX: Duration = Duration::from_secs(60);
/// A node that has to read a million ids first takes its time.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);
/// The side that is asked closes a connection without questions.
const QUIET_MAX: Duration = Duration::from_secs(120);
const REFUSED: u32 = 1;

/// What others have asked: the answers are awaited here.
#[derive(Default)]
pub struct Asked {
    numbers: AtomicU64,
    open: Mutex<HashMap<u64, oneshot::Sender<Option<Vec<u8>>>>>,
}

impl Asked {
    pub fn answer(&self, number: u64, answer: Option<Vec<u8>>) {
        if let Some(waits) = self.open.lock().unwrap().remove(&number) {
            let _ = waits.send(answer);
        }
    }

    /// No question that is open gets an answer.
    pub fn clear(&self) {
        self.open.lock().unwrap().clear();
    }
}

/// The protocol's door.
#[derive(Clone)]
pub struct Questions {
    pub asked: Arc<Asked>,
    pub asking: Arc<Asking>,
    pub listener: Arc<Listener>,
}

impl std::fmt::Debug for Questions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Questions")
    }
}

impl ProtocolHandler for Questions {
    async fn accept(&self, connection: Connection) -> Result<(), AcceptError> {
        let peer = *connection.remote_id().as_bytes();
        // It may be the successor of the process that we have a connection to, which may be dead.
        self.asking.forget(&peer);
        while let Ok(Ok((send, receive))) = timeout(QUIET_MAX, connection.accept_bi()).await {
            // A question that fails ends its stream alone, and the other side hears of it.
            let _ = self.serve(&peer, send, receive).await;
        }
        Ok(())
    }
}

impl Questions {
    async fn serve(&self, peer: &Id, mut send: SendStream, mut receive: RecvStream) -> Outcome<()> {
        let question = timeout(TRANSFER_MAX, receive.read_to_end(QUESTION_MAX)).await??;
        let number = self.asked.numbers.fetch_add(1, Ordering::Relaxed);
        let (answers, answer) = oneshot::channel();
        self.asked.open.lock().unwrap().insert(number, answers);
        self.listener.tell_question(Kind::Question, peer, number, &question);
        let answer = timeout(ANSWER_WITHIN, answer).await;
        self.asked.open.lock().unwrap().remove(&number);
        let Ok(Ok(Some(bytes))) = answer else {
            // A stream that is dropped ends as if the answer were empty.
            send.reset(REFUSED.into())?;
            return Ok(());
        };
        timeout(TRANSFER_MAX, send.write_all(&bytes)).await??;
        send.finish()?;
        let _ = timeout(TRANSFER_MAX, send.stopped()).await;
        Ok(())
    }
}

/// What we ask others: one connection for each of them, which they close when it is quiet.
#[derive(Default)]
pub struct Asking {
    connections: Mutex<HashMap<Id, Connection>>,
}

impl Asking {
    pub async fn ask(&self, endpoint: &Endpoint, peer: EndpointId, question: &[u8]) -> Outcome<Vec<u8>> {
        if let Some(connection) = self.open_to(peer.as_bytes()) {
            let answer = put(&connection, question).await;
            // Where it has ended, the other process may have died since the last question.
            if answer.is_ok() || connection.close_reason().is_none() {
                return answer;
            }
        }
        let connection = timeout(CONNECT_MAX, endpoint.connect(peer, FILL_ALPN)).await??;
        self.connections.lock().unwrap().insert(*peer.as_bytes(), connection.clone());
        put(&connection, question).await
    }

    /// The next question goes over a new connection; those that are under way stay on theirs.
    fn forget(&self, peer: &Id) {
        self.connections.lock().unwrap().remove(peer);
    }

    fn open_to(&self, peer: &Id) -> Option<Connection> {
        let mut connections = self.connections.lock().unwrap();
        connections.retain(|_, connection| connection.close_reason().is_none());
        connections.get(peer).cloned()
    }
}

async fn put(connection: &Connection, question: &[u8]) -> Outcome<Vec<u8>> {
    let (mut send, mut receive) = connection.open_bi().await?;
    timeout(TRANSFER_MAX, send.write_all(question)).await??;
    send.finish()?;
    Ok(timeout(ANSWER_WITHIN, receive.read_to_end(ANSWER_MAX)).await??)
}
