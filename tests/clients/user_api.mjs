// The way of a topic from a person's request to its end, with events that nostr-tools signs:
// node user_api.mjs NODE_URL TODOKE DATA_DIR
//
// What an operator does is done in SQL, by `todoke psql`.
import './globals.mjs'
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { finalizeEvent, generateSecretKey, getPublicKey, Relay } from 'nostr-tools'
import { getToken } from 'nostr-tools/nip98'
import { check, finish } from './report.mjs'

const [node, todoke, folder] = process.argv.slice(2)
const api = `${node}/api/v1`
const secret = generateSecretKey()
const pubkey = getPublicKey(secret)
const now = () => Math.floor(Date.now() / 1000)
const sign = (kind, tags, content = '') => finalizeEvent({ kind, created_at: now(), tags, content }, secret)

function sql(statement) {
  return execFileSync(todoke, ['psql', '--data_dir', folder, '-Atc', statement], { encoding: 'utf8' }).trim()
}

let token
async function ask(method, path, body, authorization = token && `Bearer ${token}`) {
  const headers = { ...(authorization && { Authorization: authorization }) }
  if (body) headers['Content-Type'] = 'application/json'
  const response = await fetch(api + path, { method, headers, body: body && JSON.stringify(body) })
  const text = await response.text()
  return { status: response.status, body: text && JSON.parse(text) }
}
async function until(holds) {
  for (;;) {
    const value = await holds()
    if (value) return value
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

await check('a new node asks for no consent', async () => {
  assert.deepEqual((await ask('GET', '/policies/current')).body, { policies: [] })
})

await check('a signed challenge gives a token', async () => {
  const { body } = await ask('POST', '/auth/challenge', { pubkey })
  const event = sign(22242, [['relay', node], ['challenge', body.challenge]])
  const answer = await ask('POST', '/auth/verify', { auth_event_json: event })
  assert.equal(answer.status, 200)
  assert.equal(answer.body.pubkey, pubkey)
  token = answer.body.access_token
})

await check('a request that is signed by itself needs no token', async () => {
  const url = `${api}/consents/status`
  const authorization = await getToken(url, 'get', (event) => finalizeEvent(event, secret), true)
  assert.equal((await ask('GET', '/consents/status', undefined, authorization)).status, 200)
})

await check('what is current is asked for until it is agreed to', async () => {
  sql(`INSERT INTO cn_admin.policies (type, version, title, content, status, published_at)
       VALUES ('terms', '1', 'Terms', 'Be kind.', 'published', now()), ('privacy', '1', 'Privacy', 'None.', 'published', now())`)
  sql(`INSERT INTO cn_admin.current_policies (type, version) VALUES ('terms', '1'), ('privacy', '1')`)
  const refused = await ask('POST', '/topic-subscription-requests', { topic_name: 'bitcoin' })
  assert.equal(refused.status, 428)
  assert.equal(refused.body.code, 'CONSENT_REQUIRED')
  assert.equal((await ask('POST', '/consents', { policies: refused.body.details.required })).status, 200)
})

let topic
await check('a request is approved and the node takes the topic in', async () => {
  const asked = await ask('POST', '/topic-subscription-requests', { topic_name: 'bitcoin' })
  assert.equal(asked.status, 201)
  topic = asked.body.topic_id
  assert.equal(sql(`SELECT coalesce(problem, '') FROM cn_user.approve_request('${asked.body.request_id}', NULL, 'me', 100)`), '')
})

let relay
let post
await check('an event of the topic is accepted and received', async () => {
  relay = await Relay.connect(`${node.replace('http', 'ws')}/relay`)
  const received = new Promise((resolve) => {
    relay.subscribe([{ kinds: [1], '#t': [topic], authors: [pubkey] }], { onevent: resolve })
  })
  post = sign(1, [['t', topic]], 'the quick brown fox')
  await until(() => relay.publish(post).then(() => true, () => false))
  assert.equal((await received).id, post.id)
})

await check('a search finds it', async () => {
  const hit = await until(async () => {
    const { body } = await ask('GET', `/search?topic=${topic}&q=fox`)
    return body.items.length > 0 && body.items[0]
  })
  assert.equal(hit.event.id, post.id)
  assert.ok(hit.score > 0)
})

await check('who ends the subscription loses the results, and the topic stops', async () => {
  assert.equal((await ask('DELETE', `/topic-subscriptions/${topic}`)).body.status, 'ended')
  assert.equal((await ask('GET', `/search?topic=${topic}&q=fox`)).body.code, 'SUBSCRIPTION_REQUIRED')
  await until(() => relay.publish(sign(1, [['t', topic]], `after ${Math.random()}`)).then(() => false, () => true))
  relay.close()
})

finish()
