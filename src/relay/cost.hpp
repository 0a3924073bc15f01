// What a message takes from its sender's rate. Pure.
//
// An ordinary message costs one token: the rates say how many of those a client may send. Every full
// kTokenBytes of its text, after inflation, costs one more, and so do every full kTokenRows of the rows that
// an event makes and every full kTokenFilters of the filters of a question: each is looked up by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "nostr/event.hpp"

namespace todoke::relay {

inline constexpr std::size_t kTokenBytes = 16 * 1024;
inline constexpr std::size_t kTokenRows = 100;
inline constexpr std::size_t kTokenFilters = 5;
// A ping is answered at once and a pong read: a microsecond, where an ordinary message takes a hundred.
inline constexpr double kControlCost = 0.01;

// How many rows the store writes for the event at most, without what happens to the events that it replaces
// or deletes: one for itself, one for each one-letter tag, another one for each `t` (a link and a row of the
// log) and for each target of a deletion. None for an ephemeral event.
std::size_t rows_of(const nostr::Event& event);

// What stored events cost, beside the question that they answer: nothing below the size of an ordinary page
// (relay.limit_default), then a token for every full kTokenRowsSent and kTokenBytesSent. What a COUNT counts
// is neither made into events nor sent.
inline constexpr std::size_t kTokenRowsSent = 500;
inline constexpr std::size_t kTokenBytesSent = 256 * 1024;
inline constexpr std::size_t kTokenRowsCounted = 50'000;

double cost_of(std::size_t message_bytes, std::size_t rows = 0);
double cost_of_question(std::size_t message_bytes, std::size_t filters);
// Whose bucket those of an address share who have proven no key, where the address has several clients'
// rates.
std::string anonymous_of(const std::string& network);

double cost_of_page(std::size_t rows, std::size_t bytes);
double cost_of_count(std::uint64_t rows);

}  // namespace todoke::relay
