// Logs in to the User API with a fresh key and prints the access token: node user_token.mjs NODE_URL
import './globals.mjs'
import { finalizeEvent, generateSecretKey, getPublicKey } from 'nostr-tools'

const [node] = process.argv.slice(2)
const secret = generateSecretKey()

async function post(path, body) {
  const headers = { 'Content-Type': 'application/json' }
  const response = await fetch(`${node}/api/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  return response.json()
}

const { challenge } = await post('/auth/challenge', { pubkey: getPublicKey(secret) })
const tags = [['relay', node], ['challenge', challenge]]
const event = finalizeEvent({ kind: 22242, created_at: Math.floor(Date.now() / 1000), tags, content: '' }, secret)
console.log((await post('/auth/verify', { auth_event_json: event })).access_token)
