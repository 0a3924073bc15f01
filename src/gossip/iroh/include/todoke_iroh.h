// The C face of the Rust crate in this folder: an iroh endpoint with iroh-gossip on it. It moves bytes and
// decides nothing.
//
// Ownership: a node is made by todoke_iroh_start and freed by todoke_iroh_stop, once. Whatever is handed in
// is copied before the call returns; whatever an event points to is valid during the callback only. No memory
// passes from one side to the other.
//
// Threads: every function may be called from any thread, todoke_iroh_stop only when no other call on the node
// is under way or will come. The callback comes from the node's own threads (`threads` of them), several at a
// time; it must not block, must not throw and must not call todoke_iroh_stop. None comes after
// todoke_iroh_stop has returned.
//
// Bounds: TODOKE_IROH_OUT_MAX messages wait for each topic; a message has at most `message_bytes_max` bytes
// both ways: the library reads nothing more of the topic from a peer that sends a longer one, until it
// connects again. More than `connections_max` connections are refused. What comes in is given to the callback
// at once; who keeps it bounds it. Questions: one at a time of each connection, TODOKE_IROH_QUESTION_MAX bytes,
// and TODOKE_IROH_ANSWER_MAX of an answer; one that is not answered within two minutes fails.
//
// Panics of the Rust side are caught: the call fails, or does nothing.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TODOKE_IROH_ID_BYTES 32   // of a node's public key, a secret key and a topic
#define TODOKE_IROH_OUT_MAX 256u  // messages: a tenth of a second at the usual pace
#define TODOKE_IROH_QUESTION_MAX (256u * 1024u)        // bytes
#define TODOKE_IROH_ANSWER_MAX (4u * 1024u * 1024u)    // bytes

typedef struct todoke_iroh todoke_iroh;

enum {
  TODOKE_IROH_MESSAGE = 1,         // topic, peer (who passed it on), bytes
  TODOKE_IROH_NEIGHBOUR_UP = 2,    // topic, peer
  TODOKE_IROH_NEIGHBOUR_DOWN = 3,  // topic, peer
  TODOKE_IROH_LAGGED = 4,          // topic: the library has dropped messages that came
  TODOKE_IROH_ENDED = 5,           // topic: its receiver has ended; it has to be joined again
  TODOKE_IROH_KNOWN = 6,           // peer: the address given to todoke_iroh_dial is resolved and known
  TODOKE_IROH_UNKNOWN = 7,         // peer: it could not be resolved
  TODOKE_IROH_QUESTION = 8,        // peer, number, bytes: todoke_iroh_answer is to follow, once
  TODOKE_IROH_ANSWER = 9,          // peer, number, bytes: of todoke_iroh_ask
  TODOKE_IROH_UNANSWERED = 10,     // peer, number: of todoke_iroh_ask
};

typedef struct {
  int32_t kind;
  const uint8_t* topic;  // 32 bytes, or null
  const uint8_t* peer;   // 32 bytes, or null
  const uint8_t* bytes;  // of a message, a question or an answer, else not to be looked at
  size_t size;
  uint64_t number;  // of a question
} todoke_iroh_event;

typedef struct {
  const uint8_t* secret_key;  // 32 bytes
  const char* bind;           // ip:port, [ip]:port; port 0 takes any
  const char* relays;         // URLs of relay servers, separated by blanks; empty: none
  uint32_t threads;           // at least 1
  uint32_t message_bytes_max;
  uint32_t connections_max;
  void (*on_event)(void* context, const todoke_iroh_event* event);
  void* context;
} todoke_iroh_options;

// Why todoke_iroh_start failed.
enum {
  TODOKE_IROH_STARTED = 0,
  TODOKE_IROH_FAILED = 1,
  TODOKE_IROH_ADDRESS_IN_USE = 2,
};

// Binds and listens; takes some milliseconds. Null on failure: `why` says which, `error` what, as a text that
// ends in 0.
todoke_iroh* todoke_iroh_start(const todoke_iroh_options* options, int32_t* why, char* error,
                               size_t error_size);
// Leaves all topics, closes all connections and joins the threads; takes up to three seconds. A name look-up
// that is under way ends by itself later, without a callback.
void todoke_iroh_stop(todoke_iroh* node);

// The public key of a secret key. False: it is none.
bool todoke_iroh_id_of(const uint8_t* secret_key, uint8_t* id);
// The addresses under which the node can be reached, as far as it knows: "ip:port", separated by blanks, the
// text ends in 0. Returns its length; what does not fit is left out.
size_t todoke_iroh_addresses(const todoke_iroh* node, char* text, size_t size);

// Learns the address of a peer, in the background: KNOWN or UNKNOWN follows. host:port, the URL of a relay
// server, or both with a + between them.
void todoke_iroh_dial(const todoke_iroh* node, const uint8_t* peer, const char* address);
// Forgets the peer's addresses and closes its connections.
void todoke_iroh_forget(const todoke_iroh* node, const uint8_t* peer);
// The nodes (32 bytes each) that may not connect; replaces the list, closes their connections.
void todoke_iroh_block(const todoke_iroh* node, const uint8_t* peers, size_t count);

// Joins a topic through these peers (32 bytes each); with one that is joined already, dials the peers for it.
// False: too many such calls wait.
bool todoke_iroh_join(const todoke_iroh* node, const uint8_t* topic, const uint8_t* peers, size_t count);
void todoke_iroh_leave(const todoke_iroh* node, const uint8_t* topic);

enum {
  TODOKE_IROH_SENT = 0,       // taken; it goes to whoever is a neighbour then
  TODOKE_IROH_NOT_JOINED = 1,
  TODOKE_IROH_FULL = 2,       // TODOKE_IROH_OUT_MAX wait: later
  TODOKE_IROH_TOO_LONG = 3,
};
int32_t todoke_iroh_send(const todoke_iroh* node, const uint8_t* topic, const uint8_t* bytes, size_t size);

// Asks a peer whose address is known or that is connected: ANSWER or UNANSWERED with this number follows, once.
// The connection is kept; whoever is asked closes it when it has been quiet for two minutes.
void todoke_iroh_ask(const todoke_iroh* node, const uint8_t* peer, uint64_t number, const uint8_t* bytes,
                     size_t size);
// Answers QUESTION `number`; null bytes refuse it.
void todoke_iroh_answer(const todoke_iroh* node, uint64_t number, const uint8_t* bytes, size_t size);

#ifdef __cplusplus
}
#endif
