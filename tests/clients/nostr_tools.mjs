// nostr-tools against a relay: node nostr_tools.mjs RELAY_URL open|topics TOPIC
//
// In `topics` every event carries the topic and every filter asks for it; in `open` neither does.
import './globals.mjs'
import assert from 'node:assert/strict'
import { finalizeEvent, generateSecretKey, getPublicKey, Relay, SimplePool } from 'nostr-tools'
import { fetchRelayInformation } from 'nostr-tools/nip11'
import { check, finish, refused } from './report.mjs'

const [url, policy, topic] = process.argv.slice(2)
const topics = policy === 'topics'
// The client makes up an EOSE when none comes in time. Beyond the patience of a check, so that one is noticed.
const eoseTimeout = 600_000

const secret = generateSecretKey()
const author = getPublicKey(secret)
const now = Math.floor(Date.now() / 1000)

const bare = (kind, fields = {}, key = secret) =>
  finalizeEvent({ kind, created_at: now, tags: [], content: '', ...fields }, key)
const event = (kind, fields = {}, key = secret) =>
  bare(kind, { ...fields, tags: [...(topics ? [['t', topic]] : []), ...(fields.tags ?? [])] }, key)
const filter = (fields) => (topics ? { '#t': [topic], ...fields } : fields)
const ids = (events) => events.map(({ id }) => id)

// A subscription: events as they come, and a promise of each of the things one waits for.
function open(relay, asked) {
  const events = []
  const waiting = []
  let stored
  const eose = new Promise((resolve, reject) => {
    stored = { resolve, reject }
  })
  eose.catch(() => {}) // whoever needs it awaits it
  const sub = relay.subscribe([asked], {
    eoseTimeout,
    onevent(received) {
      events.push(received)
      for (const wake of waiting.splice(0)) wake()
    },
    oninvalidevent: (received) => stored.reject(new Error(`not asked for: ${JSON.stringify(received)}`)),
    oneose: () => stored.resolve(events),
    onclose: (reason) => stored.reject(new Error(reason)),
  })
  const event = async (id) => {
    while (!ids(events).includes(id)) await new Promise((resolve) => waiting.push(resolve))
  }
  return { events, eose, event, close: () => sub.close() }
}

async function stored(relay, asked) {
  const sub = open(relay, filter(asked))
  const events = [...(await sub.eose)]
  sub.close()
  return events
}

let writer
let reader

await check('describes itself (NIP-11)', async () => {
  const information = await fetchRelayInformation(url)
  assert.ok(information.name)
  assert.ok(information.software)
  for (const nip of [1, 9, 11, 40, 42, 45, 70]) assert.ok(information.supported_nips.includes(nip), `NIP-${nip}`)
  assert.ok(information.limitation.max_message_length > 0)
})

await check('takes connections', async () => {
  writer = await Relay.connect(url)
  reader = await Relay.connect(url)
})
if (!reader) finish()

const note = event(1, { content: 'first' })

await check('stores a note', async () => {
  assert.equal(await writer.publish(note), '')
  assert.deepEqual(ids(await stored(reader, { ids: [note.id] })), [note.id])
})

await check('answers a duplicate with OK and says so', async () => {
  assert.match(await writer.publish(note), /^duplicate: /)
  assert.equal((await stored(reader, { ids: [note.id] })).length, 1)
})

await check('gives stored events newest first, up to the limit', async () => {
  const notes = [3, 1, 2].map((age) => event(1111, { created_at: now - age, content: `${age}` }))
  await Promise.all(notes.map((each) => writer.publish(each)))
  const asked = { kinds: [1111], authors: [author] }
  assert.deepEqual((await stored(reader, asked)).map(({ content }) => content), ['1', '2', '3'])
  assert.deepEqual((await stored(reader, { ...asked, limit: 2 })).map(({ content }) => content), ['1', '2'])
  assert.deepEqual((await stored(reader, { ...asked, until: now - 2 })).map(({ content }) => content), ['2', '3'])
})

await check('gives every character back', async () => {
  const content = 'line\nquote" back\\ tab\t \u0001\u007f\u2028 届け 🎉 </script>'
  const odd = event(1, { content, tags: [['x', content]] })
  await writer.publish(odd)
  const [back] = await stored(reader, { '#x': [content] })
  assert.equal(back.content, content)
  assert.equal(back.sig, odd.sig)
})

await check('finds events by their tags', async () => {
  const reply = event(1, { tags: [['e', note.id], ['p', author], ['r', 'wss://x.example']] })
  await writer.publish(reply)
  assert.deepEqual(ids(await stored(reader, { '#e': [note.id] })), [reply.id])
  assert.deepEqual(ids(await stored(reader, { '#p': [author], '#r': ['wss://x.example'] })), [reply.id])
  assert.deepEqual(ids(await stored(reader, { '#e': [note.id], '#r': ['other'] })), [])
})

await check('delivers live what another connection publishes', async () => {
  const live = open(reader, filter({ authors: [author], kinds: [1, 20001], since: now, limit: 0 }))
  assert.deepEqual(await live.eose, [])
  const fresh = event(1, { content: 'live' })
  const ephemeral = event(20001, { content: 'ephemeral' })
  await writer.publish(event(7, { content: 'not asked for' }))
  await writer.publish(fresh)
  await live.event(fresh.id)
  assert.equal(await writer.publish(ephemeral), '')
  await live.event(ephemeral.id)
  assert.deepEqual(ids(live.events), [fresh.id, ephemeral.id])
  live.close()
  assert.deepEqual(await stored(reader, { ids: [ephemeral.id] }), [], 'an ephemeral event is not stored')
})

await check('keeps the newest version of a replaceable event', async () => {
  const [oldest, old, fresh] = [2, 1, 0].map((age) => event(0, { created_at: now - age, content: `{"name":"${age}"}` }))
  await writer.publish(old)
  await writer.publish(fresh)
  await refused(writer.publish(oldest), 'duplicate: ')
  assert.deepEqual(ids(await stored(reader, { kinds: [0], authors: [author] })), [fresh.id])
})

await check('keeps the newest version for each d', async () => {
  const version = (d, age) => event(30023, { created_at: now - age, content: `${d} ${age}`, tags: [['d', d]] })
  const [old, fresh, other] = [version('a', 1), version('a', 0), version('b', 1)]
  for (const each of [old, other, fresh]) await writer.publish(each)
  const asked = { kinds: [30023], authors: [author] }
  assert.deepEqual(ids(await stored(reader, asked)), [fresh.id, other.id])
  assert.deepEqual(ids(await stored(reader, { ...asked, '#d': ['a'] })), [fresh.id])
  assert.deepEqual(await stored(reader, { ids: [old.id] }), [])
})

await check('deletes what its author deletes, for good', async () => {
  const doomed = event(1, { content: 'doomed' })
  const article = event(30023, { tags: [['d', 'doomed']], created_at: now - 1 })
  await writer.publish(doomed)
  await writer.publish(article)
  const stranger = generateSecretKey()
  await writer.publish(event(5, { tags: [['e', doomed.id]] }, stranger))
  assert.equal((await stored(reader, { ids: [doomed.id] })).length, 1, 'a stranger deletes nothing')
  const deletion = event(5, { tags: [['e', doomed.id], ['a', `30023:${author}:doomed`], ['k', '1']] })
  assert.equal(await writer.publish(deletion), '')
  assert.deepEqual(await stored(reader, { ids: [doomed.id, article.id] }), [])
  assert.deepEqual(ids(await stored(reader, { ids: [deletion.id] })), [deletion.id])
  await refused(writer.publish(doomed), 'blocked: ')
})

await check('refuses a wrong signature and a wrong id', async () => {
  const good = event(1, { content: 'good' })
  await refused(writer.publish({ ...good, sig: note.sig }), 'invalid: ')
  await refused(writer.publish({ ...good, content: 'changed' }), 'invalid: ')
  assert.deepEqual(await stored(reader, { ids: [good.id] }), [])
})

await check('counts (NIP-45)', async () => {
  assert.equal(await reader.count([filter({ kinds: [1111], authors: [author] })], {}), 3)
  assert.equal(await reader.count([filter({ kinds: [1112], authors: [author] })], {}), 0)
})

await check('takes a protected event from its author alone (NIP-42, NIP-70)', async () => {
  const pool = new SimplePool()
  const protectedBy = (key) => event(1, { content: 'protected', tags: [['-']] }, key)
  const own = protectedBy(secret)
  const onauth = async (template) => finalizeEvent(template, secret)
  await refused(Promise.all(pool.publish([url], own)), 'auth-required: ')
  await Promise.all(pool.publish([url], own, { onauth }))
  assert.deepEqual(ids(await stored(reader, { ids: [own.id] })), [own.id])
  await refused(Promise.all(pool.publish([url], protectedBy(generateSecretKey()), { onauth })), 'restricted: ')
  pool.destroy()
})

await check('serves a pool', async () => {
  const pool = new SimplePool()
  const asked = filter({ kinds: [1112], authors: [author] })
  const live = new Promise((resolve) => pool.subscribe([url], asked, { onevent: resolve, maxWait: eoseTimeout }))
  const sent = event(1112, { content: 'pool' })
  await Promise.all(pool.publish([url], sent))
  assert.equal((await live).id, sent.id)
  assert.deepEqual(ids(await pool.querySync([url], { ...asked }, { maxWait: eoseTimeout })), [sent.id])
  assert.equal((await pool.get([url], { ...asked }, { maxWait: eoseTimeout })).id, sent.id)
  pool.destroy()
})

if (topics) {
  await check('wants a topic in every event and filter', async () => {
    await refused(writer.publish(bare(1)), 'invalid: missing topic')
    await refused(open(reader, { kinds: [1] }).eose, 'invalid: #t required')
  })
} else {
  await check('serves a filter that asks for everything', async () => {
    assert.ok(ids(await stored(reader, {})).includes(note.id))
  })
}

await check('refuses a subscription without closing the connection', async () => {
  await refused(open(reader, filter({ ids: ['xyz'] })).eose, 'invalid: ')
  assert.equal((await stored(reader, { ids: [note.id] })).length, 1)
})

finish()
