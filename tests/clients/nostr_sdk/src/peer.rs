//! A client of one relay, and what it asks.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use nostr_sdk::prelude::*;

use crate::report::{Outcome, PATIENCE};

/// Beyond the patience of a check: the client takes its own timeout for the end of an answer, and we would not notice.
pub const NEVER: Duration = Duration::from_secs(600);

/// What the policy of the relay asks of events and filters.
#[derive(Clone)]
pub struct Policy {
    pub topic: Option<String>,
}

impl Policy {
    pub fn sign(&self, builder: EventBuilder, keys: &Keys) -> Outcome<Event> {
        let topic = self.topic.as_ref().map(Tag::hashtag);
        Ok(builder.tag_maybe(topic).allow_self_tagging().sign_with_keys(keys)?)
    }

    pub fn filter(&self, filter: Filter) -> Filter {
        match &self.topic {
            Some(topic) => filter.hashtag(topic),
            None => filter,
        }
    }
}

pub struct Peer {
    pub client: Client,
    pub relay: Relay,
    policy: Policy,
}

impl Peer {
    /// The client leaves a relay that sends what was not asked for, or more than the limit.
    pub async fn connect(url: &str, policy: &Policy, keys: &Keys, authenticates: bool) -> Outcome<Self> {
        let options = ClientOptions::new()
            .automatic_authentication(authenticates)
            .verify_subscriptions(true)
            .ban_relay_on_mismatch(true);
        let client = Client::builder().signer(keys.clone()).opts(options).build();
        client.add_relay(url).await?;
        client.try_connect_relay(url, PATIENCE).await?;
        let relay = client.relay(url).await?;
        Ok(Self { client, relay, policy: policy.clone() })
    }

    pub async fn stored(&self, filter: Filter) -> Outcome<Vec<Event>> {
        self.stored_as_asked(self.policy.filter(filter)).await
    }

    pub async fn stored_as_asked(&self, filter: Filter) -> Outcome<Vec<Event>> {
        let events = self.relay.fetch_events(filter, NEVER, ReqExitPolicy::ExitOnEOSE).await?;
        Ok(events.into_iter().collect())
    }

    pub async fn stored_ids(&self, filter: Filter) -> Outcome<Vec<EventId>> {
        Ok(self.stored(filter).await?.iter().map(|event| event.id).collect())
    }

    pub async fn count(&self, filter: Filter) -> Outcome<usize> {
        Ok(self.relay.count_events(self.policy.filter(filter), NEVER).await?)
    }

    /// A subscription that stays, with its stored events behind it.
    pub async fn follow(&self, filter: Filter) -> Outcome<Live> {
        let mut notifications = self.relay.notifications();
        let id = self.relay.subscribe(self.policy.filter(filter), SubscribeOptions::default()).await?;
        loop {
            if let RelayNotification::Message { message } = notifications.recv().await? {
                match message {
                    RelayMessage::EndOfStoredEvents(of) if *of == id => break,
                    RelayMessage::Closed { message, .. } => return Err(message.into()),
                    _ => (),
                }
            }
        }
        Ok(Live { id, notifications })
    }
}

pub struct Live {
    id: SubscriptionId,
    notifications: tokio::sync::broadcast::Receiver<RelayNotification>,
}

impl Live {
    pub async fn next(&mut self) -> Outcome<EventId> {
        loop {
            if let RelayNotification::Message { message: RelayMessage::Event { subscription_id, event } } =
                self.notifications.recv().await?
            {
                if *subscription_id == self.id {
                    return Ok(event.id);
                }
            }
        }
    }
}

/// NIP-11. The SDK has the document's type, but leaves it to others to fetch it.
pub fn information(url: &str) -> Outcome<RelayInformationDocument> {
    let url = Url::parse(url)?;
    let host =
        format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default());
    let mut stream = TcpStream::connect(&host)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "GET {} HTTP/1.1\r\nHost: {host}\r\nAccept: application/nostr+json\r\nConnection: close\r\n\r\n",
        url.path()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").ok_or("no body")?;
    Ok(RelayInformationDocument::from_json(body)?)
}
