//! A plain iroh-gossip peer for tests, with nothing of todoke in it:
//!
//!     peer TOPIC_HEX COMMANDS [PEER_ID@IP:PORT]
//!
//! Prints `peer ID@IP:PORT` first, `up ID` and `down ID` for neighbours, and `got BYTES` for each message. A line of the file
//! COMMANDS, a named pipe, is broadcast as it is; `!fill N` broadcasts N bytes, `!flood N` broadcasts N different messages of garbage as fast as it can.
//! `!ask TEXT` asks the peer by the protocol `todoke/fill/1`, and prints `answer TEXT` or `no answer`.

use std::io::BufRead;
use std::net::SocketAddr;

use bytes::Bytes;
use futures_lite::StreamExt;
use iroh::address_lookup::memory::MemoryLookup;
use iroh::endpoint::presets;
use iroh::protocol::Router;
use iroh::{Endpoint, EndpointAddr, EndpointId, RelayMode};
use iroh_gossip::api::{Event, GossipSender};
use iroh_gossip::net::{Gossip, GOSSIP_ALPN};
use iroh_gossip::proto::TopicId;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

fn topic_of(hex: &str) -> Outcome<TopicId> {
    let mut bytes = [0u8; 32];
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * i..2 * i + 2).ok_or("a topic has 64 hex digits")?, 16)?;
    }
    Ok(TopicId::from_bytes(bytes))
}

async fn ask(endpoint: &Endpoint, peer: EndpointId, question: &str) -> Outcome<String> {
    let connection = endpoint.connect(peer, b"todoke/fill/1").await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(question.as_bytes()).await?;
    send.finish()?;
    let answer = receive.read_to_end(MESSAGE_BYTES_MAX).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

async fn obey(
    endpoint: &Endpoint,
    peers: &[EndpointId],
    sender: &GossipSender,
    line: &str,
) -> Outcome<()> {
    if let Some(question) = line.strip_prefix("!ask ") {
        let peer = *peers.first().ok_or("nobody to ask")?;
        match ask(endpoint, peer, question).await {
            Ok(answer) => println!("answer {answer}"),
            Err(_) => println!("no answer"),
        }
    } else if let Some(count) = line.strip_prefix("!fill ") {
        sender.broadcast(Bytes::from(vec![b'x'; count.parse()?])).await?;
    } else if let Some(count) = line.strip_prefix("!flood ") {
        for i in 0..count.parse::<u64>()? {
            sender.broadcast(Bytes::from(format!("garbage {i}"))).await?;
        }
    } else {
        sender.broadcast(Bytes::from(line.to_owned())).await?;
    }
    Ok(())
}

#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let topic = topic_of(&arguments.next().ok_or("usage: peer TOPIC_HEX COMMANDS [PEER]")?)?;
    let commands = arguments.next().ok_or("usage: peer TOPIC_HEX COMMANDS [PEER]")?;
    let lookup = MemoryLookup::new();
    let endpoint = Endpoint::builder(presets::Minimal)
        .relay_mode(RelayMode::Disabled)
        .clear_address_lookup()
        .address_lookup(lookup.clone())
        .clear_ip_transports()
        .bind_addr("127.0.0.1:0")?
        .bind()
        .await?;
    let gossip = Gossip::builder().max_message_size(MESSAGE_BYTES_MAX).spawn(endpoint.clone());
    let router = Router::builder(endpoint.clone()).accept(GOSSIP_ALPN, gossip.clone()).spawn();
    println!("peer {}@{}", endpoint.id(), endpoint.bound_sockets()[0]);

    let mut peers = Vec::new();
    if let Some(peer) = arguments.next() {
        let (id, address) = peer.split_once('@').ok_or("a peer is ID@IP:PORT")?;
        let id: EndpointId = id.parse()?;
        lookup.add_endpoint_info(EndpointAddr::new(id).with_ip_addr(address.parse::<SocketAddr>()?));
        peers.push(id);
    }
    let (sender, mut receiver) = gossip.subscribe(topic, peers.clone()).await?.split();

    let (lines, mut given) = tokio::sync::mpsc::channel::<String>(16);
    std::thread::spawn(move || {
        let Ok(file) = std::fs::File::open(commands) else { return };
        for line in std::io::BufReader::new(file).lines().map_while(Result::ok) {
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    });
    loop {
        tokio::select! {
            line = given.recv() => match line {
                Some(line) => obey(&endpoint, &peers, &sender, &line).await?,
                None => break,
            },
            event = receiver.next() => match event {
                Some(Ok(Event::Received(message))) => println!("got {}", String::from_utf8_lossy(&message.content)),
                Some(Ok(Event::NeighborUp(id))) => println!("up {id}"),
                Some(Ok(Event::NeighborDown(id))) => println!("down {id}"),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => break,
            },
        }
    }
    router.shutdown().await?;
    Ok(())
}
