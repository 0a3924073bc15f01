// What browsers and newer versions of Node have by themselves; nostr-tools takes it from the global object when it is loaded.
import { webcrypto } from 'node:crypto'
import WebSocket from 'ws'

globalThis.crypto ??= webcrypto
globalThis.WebSocket ??= WebSocket
