//! nostr-sdk against a relay: nostr_sdk_client RELAY_URL open|topics TOPIC
//!
//! In `topics` every event carries the topic and every filter asks for it; in `open` neither does.

mod peer;
mod report;

use nostr_sdk::prelude::*;

use peer::{information, Peer, Policy, NEVER};
use report::{refused, same, Outcome, Report};

struct Setting {
    url: String,
    policy: Policy,
    keys: Keys,
    now: Timestamp,
    writer: Peer,
    reader: Peer,
    note: Event,
}

impl Setting {
    async fn new(url: String, policy: Policy) -> Outcome<Self> {
        let keys = Keys::generate();
        let writer = Peer::connect(&url, &policy, &keys, false).await?;
        let reader = Peer::connect(&url, &policy, &Keys::generate(), false).await?;
        let note = policy.sign(EventBuilder::text_note("first"), &keys)?;
        Ok(Self { url, policy, keys, now: Timestamp::now(), writer, reader, note })
    }

    fn event(&self, kind: u16, age: u64, content: &str, tags: Vec<Tag>) -> Outcome<Event> {
        let builder =
            EventBuilder::new(Kind::from(kind), content).tags(tags).custom_created_at(self.now - age);
        self.policy.sign(builder, &self.keys)
    }

    fn own(&self, kind: u16) -> Filter {
        Filter::new().author(self.keys.public_key()).kind(Kind::from(kind))
    }

    async fn publish(&self, event: &Event) -> Outcome {
        self.writer.relay.send_event(event).await?;
        Ok(())
    }

    async fn describes_itself(&self) -> Outcome {
        let information = information(&self.url)?;
        same(information.name.is_some() && information.limitation.is_some(), true)?;
        let nips = information.supported_nips.unwrap_or_default();
        same([1, 9, 11, 40, 42, 45, 70, 77].iter().all(|nip| nips.contains(nip)), true)
    }

    async fn stores_a_note(&self) -> Outcome {
        self.publish(&self.note).await?;
        same(self.reader.stored(Filter::new().id(self.note.id)).await?, vec![self.note.clone()])
    }

    async fn takes_a_duplicate_once(&self) -> Outcome {
        self.publish(&self.note).await?;
        same(self.reader.stored(Filter::new().id(self.note.id)).await?.len(), 1)
    }

    async fn gives_the_newest_up_to_the_limit(&self) -> Outcome {
        let mut notes = Vec::new();
        for age in 0..3 {
            notes.push(self.event(1111, age, "limit", vec![])?);
        }
        for index in [2, 0, 1] {
            self.publish(&notes[index]).await?;
        }
        same(self.reader.stored(self.own(1111)).await?, notes.clone())?;
        same(self.reader.stored(self.own(1111).limit(2)).await?, notes[..2].to_vec())?;
        same(self.reader.stored(self.own(1111).until(self.now - 1)).await?, notes[1..].to_vec())
    }

    async fn finds_events_by_their_tags(&self) -> Outcome {
        let address = Tag::custom(TagKind::custom("r"), ["wss://x.example"]);
        let tags = vec![Tag::event(self.note.id), Tag::public_key(self.keys.public_key()), address];
        let reply = self.event(1, 0, "届け 🎉\n\"\\\u{1}\u{2028}", tags)?;
        self.publish(&reply).await?;
        same(self.reader.stored(Filter::new().event(self.note.id)).await?, vec![reply.clone()])?;
        let both = Filter::new().pubkey(self.keys.public_key());
        same(self.reader.stored(both.clone().reference("wss://x.example")).await?, vec![reply])?;
        same(self.reader.stored(both.reference("other")).await?, vec![])
    }

    async fn delivers_live(&self) -> Outcome {
        let kinds = [Kind::TextNote, Kind::from(20001)];
        let filter = Filter::new().author(self.keys.public_key()).kinds(kinds).limit(0);
        let mut live = self.reader.follow(filter).await?;
        let fresh = self.event(1, 0, "live", vec![])?;
        let ephemeral = self.event(20001, 0, "ephemeral", vec![])?;
        self.publish(&self.event(7, 0, "not asked for", vec![])?).await?;
        self.publish(&fresh).await?;
        self.publish(&ephemeral).await?;
        same([live.next().await?, live.next().await?], [fresh.id, ephemeral.id])?;
        same(self.reader.stored(Filter::new().id(ephemeral.id)).await?, vec![])
    }

    async fn keeps_the_newest_version(&self) -> Outcome {
        let mut versions = Vec::new();
        for age in 0..3 {
            let metadata = Metadata::new().name(age.to_string());
            versions.push(self.event(0, age, &metadata.as_json(), vec![])?);
        }
        self.publish(&versions[1]).await?;
        self.publish(&versions[0]).await?;
        refused(self.publish(&versions[2]).await, "duplicate: ")?;
        same(self.reader.stored_ids(self.own(0)).await?, vec![versions[0].id])
    }

    async fn keeps_the_newest_version_for_each_d(&self) -> Outcome {
        let version = |d: &str, age| self.event(30023, age, d, vec![Tag::identifier(d)]);
        let (old, fresh, other) = (version("a", 1)?, version("a", 0)?, version("b", 1)?);
        for event in [&old, &other, &fresh] {
            self.publish(event).await?;
        }
        same(self.reader.stored_ids(self.own(30023)).await?, vec![fresh.id, other.id])?;
        same(self.reader.stored_ids(self.own(30023).identifier("a")).await?, vec![fresh.id])?;
        same(self.reader.stored(Filter::new().id(old.id)).await?, vec![])
    }

    async fn deletes_for_good(&self) -> Outcome {
        let doomed = self.event(1, 0, "doomed", vec![])?;
        let article = self.event(30023, 1, "doomed", vec![Tag::identifier("doomed")])?;
        self.publish(&doomed).await?;
        self.publish(&article).await?;
        let by_id = EventDeletionRequest::new().id(doomed.id);
        let stranger = self.policy.sign(EventBuilder::delete(by_id.clone()), &Keys::generate())?;
        self.publish(&stranger).await?;
        same(self.reader.stored(Filter::new().id(doomed.id)).await?.len(), 1)?;

        let address = Coordinate::new(Kind::LongFormTextNote, self.keys.public_key()).identifier("doomed");
        let deletion = self.policy.sign(EventBuilder::delete(by_id.coordinate(address)), &self.keys)?;
        self.publish(&deletion).await?;
        same(self.reader.stored(Filter::new().ids([doomed.id, article.id])).await?, vec![])?;
        same(self.reader.stored_ids(Filter::new().id(deletion.id)).await?, vec![deletion.id])?;
        refused(self.publish(&doomed).await, "blocked: ")
    }

    async fn refuses_what_is_forged(&self) -> Outcome {
        let good = self.event(1, 0, "good", vec![])?;
        let mut forged = good.clone();
        forged.sig = self.note.sig;
        refused(self.publish(&forged).await, "invalid: ")?;
        let mut changed = good.clone();
        changed.content = "changed".into();
        refused(self.publish(&changed).await, "invalid: ")?;
        same(self.reader.stored(Filter::new().id(good.id)).await?, vec![])
    }

    async fn counts(&self) -> Outcome {
        same(self.reader.count(self.own(1111)).await?, 3)?;
        same(self.reader.count(self.own(1112)).await?, 0)
    }

    async fn takes_a_protected_event_from_its_author_alone(&self) -> Outcome {
        let own = self.event(1, 0, "protected", vec![Tag::protected()])?;
        refused(self.publish(&own).await, "auth-required: ")?;
        let author = Peer::connect(&self.url, &self.policy, &self.keys, true).await?;
        author.relay.send_event(&own).await?;
        same(self.reader.stored_ids(Filter::new().id(own.id)).await?, vec![own.id])?;
        let other = EventBuilder::text_note("protected").tag(Tag::protected());
        let other = self.policy.sign(other, &Keys::generate())?;
        refused(author.relay.send_event(&other).await, "restricted: ")?;
        author.client.shutdown().await;
        Ok(())
    }

    async fn serves_the_pool(&self) -> Outcome {
        let sent = self.event(1112, 0, "pool", vec![])?;
        let output = self.writer.client.send_event(&sent).await?;
        same((output.success.len(), output.failed.len()), (1, 0))?;
        let filter = self.policy.filter(self.own(1112));
        let events = self.reader.client.fetch_events(filter, NEVER).await?;
        same(events.into_iter().collect::<Vec<_>>(), vec![sent])
    }

    /// The client has all but two of the relay's events, and one that the relay lacks.
    async fn reconciles(&self) -> Outcome {
        let mut notes = Vec::new();
        for age in 0..40 {
            notes.push(self.event(1113, age, "reconciled", vec![])?);
            self.publish(&notes[age as usize]).await?;
        }
        let alone = self.event(1113, 7, "not published", vec![])?;
        let here = notes[2..].iter().chain([&alone]).map(|event| (event.id, event.created_at)).collect();
        let filter = self.policy.filter(self.own(1113));
        let found = self.reader.relay.sync_with_items(filter, here, &SyncOptions::new().dry_run()).await?;
        same(found.remote, notes[..2].iter().map(|event| event.id).collect())?;
        same(found.local, [alone.id].into())
    }

    async fn holds_to_its_topic_policy(&self) -> Outcome {
        let note = EventBuilder::text_note("bare").sign_with_keys(&self.keys)?;
        let everything = self.reader.stored_as_asked(Filter::new().kind(Kind::TextNote)).await;
        if self.policy.topic.is_some() {
            refused(self.publish(&note).await, "invalid: missing topic")?;
            refused(everything, "invalid: #t required")
        } else {
            self.publish(&note).await?;
            same(everything?.contains(&self.note), true)
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, url, policy, topic] = arguments.as_slice() else {
        return Err("usage: nostr_sdk_client RELAY_URL open|topics TOPIC".into());
    };
    let policy = Policy { topic: (policy == "topics").then(|| topic.clone()) };
    let on = Setting::new(url.clone(), policy).await?;
    let mut report = Report::default();
    report.check("describes itself (NIP-11)", on.describes_itself()).await;
    report.check("stores a note", on.stores_a_note()).await;
    report.check("answers a duplicate with OK and keeps one", on.takes_a_duplicate_once()).await;
    report
        .check("gives the newest stored events, up to the limit", on.gives_the_newest_up_to_the_limit())
        .await;
    report.check("finds events by their tags", on.finds_events_by_their_tags()).await;
    report.check("delivers live what another connection publishes", on.delivers_live()).await;
    report.check("keeps the newest version of a replaceable event", on.keeps_the_newest_version()).await;
    report.check("keeps the newest version for each d", on.keeps_the_newest_version_for_each_d()).await;
    report.check("deletes what its author deletes, for good", on.deletes_for_good()).await;
    report.check("refuses a wrong signature and a wrong id", on.refuses_what_is_forged()).await;
    report.check("counts (NIP-45)", on.counts()).await;
    report
        .check(
            "takes a protected event from its author alone (NIP-42, NIP-70)",
            on.takes_a_protected_event_from_its_author_alone(),
        )
        .await;
    report.check("serves the pool", on.serves_the_pool()).await;
    report.check("reconciles (NIP-77)", on.reconciles()).await;
    report.check("holds to its topic policy", on.holds_to_its_topic_policy()).await;
    std::process::exit(if report.failed > 0 { 1 } else { 0 });
}
