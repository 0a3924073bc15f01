//! An endpoint, its topics, and the runtime under them. A joined topic has two tasks, so that neither waits for the other: one
//! takes what comes to the listener at once, one passes on what is to be sent.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use bytes::Bytes;
use futures_lite::StreamExt;
use iroh::address_lookup::memory::MemoryLookup;
use iroh::endpoint::{
    presets, AfterHandshakeOutcome, BeforeConnectOutcome, Connection, EndpointHooks, QuicTransportConfig,
    WeakConnectionHandle,
};
use iroh::protocol::Router;
use iroh::{Endpoint, EndpointAddr, EndpointId, RelayMode, RelayUrl, SecretKey, TransportAddr};
use iroh_gossip::api::{Event, GossipReceiver, GossipSender, JoinOptions};
use iroh_gossip::net::{Gossip, GOSSIP_ALPN};
use iroh_gossip::proto::TopicId;
use tokio::sync::{mpsc, oneshot};

use crate::questions::{Asked, Asking, Questions, FILL_ALPN};
use crate::{Kind, Listener};

type Id = [u8; 32];

/// TODOKE_IROH_OUT_MAX of the header.
const OUT_MAX: usize = 256;
/// What the library keeps for a receiver that is late. The task below never is for long.
const IN_MAX: usize = 4096;
/// Of a gossip message around its content.
const ENVELOPE_BYTES: usize = 1024;
/// A peer that vanished is noticed, and whoever waits to send to it goes on.
const IDLE_MAX: Duration = Duration::from_secs(8);
const KEEP_ALIVE: Duration = Duration::from_secs(2);
const CLOSE_MAX: Duration = Duration::from_millis(1500);
const THREADS_END_MAX: Duration = Duration::from_millis(1000);
const REFUSED: u32 = 1;

pub struct StartOptions {
    pub secret_key: Id,
    pub bind: String,
    pub relays: String,
    pub threads: usize,
    pub message_bytes_max: usize,
    pub connections_max: usize,
    pub listener: Listener,
}

pub enum Failure {
    AddressInUse,
    Other(String),
}

#[repr(i32)]
pub enum Sent {
    Taken = 0,
    NotJoined = 1,
    Full = 2,
    TooLong = 3,
}

enum Order {
    Send(Bytes),
    Join(Vec<EndpointId>),
}

struct Topic {
    number: u64,
    orders: mpsc::Sender<Order>,
    /// The receiving task ends when it is dropped.
    _left: oneshot::Sender<()>,
}

/// A neighbour needs one for gossip and one each way for questions; new ones may come before the old ones are known to be dead.
const CONNECTIONS_OF_PEER_MAX: usize = 8;

/// Who may connect, and who has.
#[derive(Debug)]
struct Door {
    connections_max: usize,
    blocked: RwLock<HashSet<EndpointId>>,
    connections: Mutex<Vec<(EndpointId, WeakConnectionHandle)>>,
}

impl Door {
    fn lets_in(&self, id: &EndpointId) -> bool {
        !self.blocked.read().unwrap().contains(id)
    }

    fn add(&self, connection: &Connection) -> bool {
        let mut connections = self.connections.lock().unwrap();
        connections.retain(|(_, weak)| weak.upgrade().is_some_and(|c| c.close_reason().is_none()));
        let id = connection.remote_id();
        let of_it = connections.iter().filter(|(other, _)| *other == id).count();
        if of_it >= CONNECTIONS_OF_PEER_MAX || connections.len() >= self.connections_max {
            return false;
        }
        connections.push((id, connection.weak_handle()));
        true
    }

    fn close(&self, wanted: impl Fn(&EndpointId) -> bool) {
        for (id, weak) in self.connections.lock().unwrap().iter() {
            if !wanted(id) {
                continue;
            }
            if let Some(connection) = weak.upgrade() {
                connection.close(REFUSED.into(), b"refused");
            }
        }
    }
}

#[derive(Debug, Clone)]
struct DoorHooks(Arc<Door>);

impl EndpointHooks for DoorHooks {
    async fn before_connect(&self, remote: &EndpointAddr, _alpn: &[u8]) -> BeforeConnectOutcome {
        match self.0.lets_in(&remote.id) {
            true => BeforeConnectOutcome::Accept,
            false => BeforeConnectOutcome::Reject,
        }
    }

    async fn after_handshake(&self, connection: &Connection) -> AfterHandshakeOutcome {
        if self.0.lets_in(&connection.remote_id()) && self.0.add(connection) {
            return AfterHandshakeOutcome::accept();
        }
        AfterHandshakeOutcome::Reject { error_code: REFUSED.into(), reason: b"refused".to_vec() }
    }
}

struct Shared {
    listener: Arc<Listener>,
    topics: Mutex<HashMap<Id, Topic>>,
}

impl Shared {
    /// Its receiver has ended. A topic that was left or joined anew meanwhile is not meant.
    fn ended(&self, topic: &Id, number: u64) {
        let mut topics = self.topics.lock().unwrap();
        if topics.get(topic).is_none_or(|joined| joined.number != number) {
            return;
        }
        topics.remove(topic);
        drop(topics);
        self.listener.tell(Kind::Ended, Some(topic), None, &[]);
    }
}

pub struct Node {
    runtime: tokio::runtime::Runtime,
    endpoint: Endpoint,
    router: Router,
    gossip: Gossip,
    lookup: MemoryLookup,
    door: Arc<Door>,
    shared: Arc<Shared>,
    asking: Arc<Asking>,
    asked: Arc<Asked>,
    message_bytes_max: usize,
    numbers: AtomicU64,
}

pub fn id_of(secret_key: &Id) -> Id {
    *SecretKey::from_bytes(secret_key).public().as_bytes()
}

fn endpoint_id(id: &Id) -> Option<EndpointId> {
    EndpointId::from_bytes(id).ok()
}

/// URLs between blanks.
fn relay_mode(relays: &str) -> Result<RelayMode, Failure> {
    let urls: Result<Vec<RelayUrl>, _> = relays.split_whitespace().map(str::parse).collect();
    let urls = urls.map_err(|error| Failure::Other(format!("{relays}: {error:#}")))?;
    Ok(if urls.is_empty() { RelayMode::Disabled } else { RelayMode::custom(urls) })
}

/// `host:port`, a relay's URL, or both with a `+` between them.
async fn resolve(address: &str) -> Vec<TransportAddr> {
    let mut found = Vec::new();
    for part in address.splitn(2, '+') {
        if part.contains("://") {
            found.extend(part.parse::<RelayUrl>().ok().map(TransportAddr::Relay));
        } else if let Ok(addresses) = tokio::net::lookup_host(part).await {
            found.extend(addresses.map(TransportAddr::Ip));
        }
    }
    found
}

fn transport() -> QuicTransportConfig {
    QuicTransportConfig::builder()
        .max_idle_timeout(IDLE_MAX.try_into().ok())
        .default_path_max_idle_timeout(IDLE_MAX)
        .keep_alive_interval(KEEP_ALIVE)
        .default_path_keep_alive_interval(KEEP_ALIVE)
        .build()
}

impl Node {
    pub fn start(options: StartOptions) -> Result<Node, Failure> {
        let other = |error: &dyn std::fmt::Display| Failure::Other(format!("{error:#}"));
        let address: SocketAddr = options.bind.parse().map_err(|e| other(&e))?;
        // The library hides why it could not bind.
        if let Err(error) = std::net::UdpSocket::bind(address) {
            return Err(match error.kind() {
                std::io::ErrorKind::AddrInUse => Failure::AddressInUse,
                _ => other(&error),
            });
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.threads)
            .thread_name("gossip")
            .enable_all()
            .build()
            .map_err(|e| other(&e))?;
        let lookup = MemoryLookup::new();
        let relay_mode = relay_mode(&options.relays)?;
        let door = Arc::new(Door {
            connections_max: options.connections_max,
            blocked: RwLock::default(),
            connections: Mutex::default(),
        });
        let builder = Endpoint::builder(presets::Minimal)
            .secret_key(SecretKey::from_bytes(&options.secret_key))
            .relay_mode(relay_mode)
            .clear_address_lookup()
            .address_lookup(lookup.clone())
            .transport_config(transport())
            .hooks(DoorHooks(door.clone()))
            .clear_ip_transports()
            .bind_addr(address)
            .map_err(|e| other(&e))?;
        let listener = Arc::new(options.listener);
        let asked = Arc::new(Asked::default());
        let asking = Arc::new(Asking::default());
        let questions = Questions { asked: asked.clone(), asking: asking.clone(), listener: listener.clone() };
        let (endpoint, gossip, router) = runtime
            .block_on(async {
                let endpoint = builder.bind().await?;
                let gossip = Gossip::builder()
                    .max_message_size(options.message_bytes_max + ENVELOPE_BYTES)
                    .spawn(endpoint.clone());
                let router = Router::builder(endpoint.clone())
                    .accept(GOSSIP_ALPN, gossip.clone())
                    .accept(FILL_ALPN, questions)
                    .spawn();
                Ok::<_, iroh::endpoint::BindError>((endpoint, gossip, router))
            })
            .map_err(|e| other(&e))?;
        let shared = Arc::new(Shared { listener, topics: Mutex::default() });
        Ok(Node {
            runtime,
            endpoint,
            router,
            gossip,
            lookup,
            door,
            shared,
            asking,
            asked,
            message_bytes_max: options.message_bytes_max,
            numbers: AtomicU64::new(0),
        })
    }

    pub fn stop(self) {
        self.shared.topics.lock().unwrap().clear();
        self.asked.clear();
        self.runtime.block_on(async {
            let _ = tokio::time::timeout(CLOSE_MAX, self.router.shutdown()).await;
        });
        self.runtime.shutdown_timeout(THREADS_END_MAX);
    }

    pub fn addresses(&self) -> Vec<String> {
        let mut addresses: Vec<SocketAddr> = self
            .endpoint
            .bound_sockets()
            .into_iter()
            .chain(self.endpoint.addr().ip_addrs().copied())
            .filter(|address| !address.ip().is_unspecified())
            .collect();
        // What others can reach first.
        addresses.sort_by_key(|address| (address.ip().is_loopback(), address.is_ipv6(), *address));
        addresses.dedup();
        addresses.iter().map(ToString::to_string).collect()
    }

    pub fn dial(&self, peer: Id, address: String) {
        let (lookup, shared) = (self.lookup.clone(), self.shared.clone());
        self.runtime.spawn(async move {
            let found = resolve(&address).await;
            let Some(id) = endpoint_id(&peer).filter(|_| !found.is_empty()) else {
                shared.listener.tell(Kind::Unknown, None, Some(&peer), &[]);
                return;
            };
            lookup.set_endpoint_info(EndpointAddr::from_parts(id, found));
            shared.listener.tell(Kind::Known, None, Some(&peer), &[]);
        });
    }

    pub fn forget(&self, peer: &Id) {
        let Some(id) = endpoint_id(peer) else { return };
        self.lookup.remove_endpoint_info(id);
        self.door.close(|other| *other == id);
    }

    pub fn block(&self, peers: Vec<Id>) {
        let blocked: HashSet<EndpointId> = peers.iter().filter_map(endpoint_id).collect();
        *self.door.blocked.write().unwrap() = blocked.clone();
        self.door.close(|id| blocked.contains(id));
    }

    pub fn join(&self, topic: Id, peers: Vec<Id>) -> bool {
        let peers: Vec<EndpointId> = peers.iter().filter_map(endpoint_id).collect();
        let mut topics = self.shared.topics.lock().unwrap();
        if let Some(joined) = topics.get(&topic) {
            return joined.orders.try_send(Order::Join(peers)).is_ok();
        }
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let (orders, to_do) = mpsc::channel(OUT_MAX);
        let (left, leaves) = oneshot::channel();
        topics.insert(topic, Topic { number, orders, _left: left });
        let (gossip, shared) = (self.gossip.clone(), self.shared.clone());
        self.runtime.spawn(async move {
            let mut options = JoinOptions::with_bootstrap(peers);
            options.subscription_capacity = IN_MAX;
            if let Ok(joined) = gossip.subscribe_with_opts(TopicId::from_bytes(topic), options).await {
                let (sender, receiver) = joined.split();
                tokio::spawn(pass_on(sender, to_do));
                receive(&shared.listener, &topic, receiver, leaves).await;
            }
            shared.ended(&topic, number);
        });
        true
    }

    pub fn leave(&self, topic: &Id) {
        self.shared.topics.lock().unwrap().remove(topic);
    }

    pub fn send(&self, topic: &Id, bytes: &[u8]) -> Sent {
        if bytes.len() > self.message_bytes_max {
            return Sent::TooLong;
        }
        let topics = self.shared.topics.lock().unwrap();
        let Some(joined) = topics.get(topic) else { return Sent::NotJoined };
        match joined.orders.try_send(Order::Send(Bytes::copy_from_slice(bytes))) {
            Ok(()) => Sent::Taken,
            Err(mpsc::error::TrySendError::Full(_)) => Sent::Full,
            Err(mpsc::error::TrySendError::Closed(_)) => Sent::NotJoined,
        }
    }
}

impl Node {
    pub fn ask(&self, peer: Id, number: u64, question: Vec<u8>) {
        let (asking, endpoint, shared) = (self.asking.clone(), self.endpoint.clone(), self.shared.clone());
        self.runtime.spawn(async move {
            let answer = match endpoint_id(&peer) {
                Some(id) => asking.ask(&endpoint, id, &question).await.ok(),
                None => None,
            };
            match answer {
                Some(bytes) => shared.listener.tell_question(Kind::Answer, &peer, number, &bytes),
                None => shared.listener.tell_question(Kind::Unanswered, &peer, number, &[]),
            }
        });
    }

    pub fn answer(&self, number: u64, answer: Option<Vec<u8>>) {
        self.asked.answer(number, answer);
    }
}

/// Until the topic is left.
async fn pass_on(sender: GossipSender, mut orders: mpsc::Receiver<Order>) {
    while let Some(order) = orders.recv().await {
        let done = match order {
            Order::Send(bytes) => sender.broadcast(bytes).await,
            Order::Join(peers) => sender.join_peers(peers).await,
        };
        if done.is_err() {
            return;
        }
    }
}

async fn receive(
    listener: &Listener,
    topic: &Id,
    mut receiver: GossipReceiver,
    mut leaves: oneshot::Receiver<()>,
) {
    loop {
        let event = tokio::select! {
            biased;
            _ = &mut leaves => return,
            event = receiver.next() => event,
        };
        match event {
            Some(Ok(Event::Received(message))) => {
                let peer = message.delivered_from;
                listener.tell(Kind::Message, Some(topic), Some(peer.as_bytes()), &message.content);
            }
            Some(Ok(Event::NeighborUp(peer))) => {
                listener.tell(Kind::NeighbourUp, Some(topic), Some(peer.as_bytes()), &[]);
            }
            Some(Ok(Event::NeighborDown(peer))) => {
                listener.tell(Kind::NeighbourDown, Some(topic), Some(peer.as_bytes()), &[]);
            }
            Some(Ok(Event::Lagged)) => listener.tell(Kind::Lagged, Some(topic), None, &[]),
            Some(Err(_)) | None => return,
        }
    }
}
