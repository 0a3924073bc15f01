// One line for each check, `ok NAME` or `FAIL NAME why`; exit code 1 when any failed.
import assert from 'node:assert/strict'

const patienceMs = 20_000 // generous: only a hang reaches it
let failed = 0

export async function check(name, body) {
  let timer
  const patience = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing after ${patienceMs / 1000} s`)), patienceMs)
  })
  try {
    await Promise.race([body(), patience])
    console.log(`ok ${name}`)
  } catch (error) {
    failed += 1
    console.log(`FAIL ${name} ${String(error?.message ?? error).replace(/\s+/g, ' ')}`)
  } finally {
    clearTimeout(timer)
  }
}

// The promise must fail, with a message that begins like this.
export async function refused(promise, start) {
  let answer
  try {
    answer = await promise
  } catch (error) {
    assert.ok(error.message.startsWith(start), `expected ${start}…, got ${error.message}`)
    return
  }
  assert.fail(`expected ${start}…, was accepted: ${answer}`)
}

export function finish() {
  process.exit(failed > 0 ? 1 : 0)
}
