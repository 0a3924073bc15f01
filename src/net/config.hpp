// The configuration keys of the network room.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "net/server.hpp"

namespace todoke::net::keys {

inline constexpr Key<std::string> kListen{{
    .name = "server.listen",
    .type = KeyType::address,
    .fallback = "127.0.0.1:7447",
    .meaning = "Address of the public listener: clients, HTTP API and WebSocket. An IPv6 address stands in "
               "brackets.",
}};
inline constexpr Key<std::string> kInternalListen{{
    .name = "server.internal_listen",
    .type = KeyType::address,
    .fallback = "127.0.0.1:7448",
    .meaning = "Address of the internal listener: health, metrics and administration. It must not be "
               "reachable from outside.",
}};
inline constexpr Key<std::string> kTlsCert{{
    .name = "server.tls_cert",
    .type = KeyType::path,
    .meaning = "PEM file with the certificate of the public listener and its chain. Empty: no TLS here; a "
               "proxy in front "
               "does it. Set together with server.tls_key.",
}};
inline constexpr Key<std::string> kTlsKey{{
    .name = "server.tls_key",
    .type = KeyType::path,
    .meaning = "PEM file with the private key that belongs to server.tls_cert.",
}};
inline constexpr Key<std::string> kInternalTlsCert{{
    .name = "server.internal_tls_cert",
    .type = KeyType::path,
    .meaning =
        "PEM file with the certificate of the internal listener and its chain. Empty: no TLS, and nobody "
        "can log in to the Admin API where server.internal_listen is not a loopback address. Set together "
        "with server.internal_tls_key.",
}};
inline constexpr Key<std::string> kInternalTlsKey{{
    .name = "server.internal_tls_key",
    .type = KeyType::path,
    .meaning = "PEM file with the private key that belongs to server.internal_tls_cert.",
}};
inline constexpr Key<std::vector<std::string>> kTrustedProxies{{
    .name = "server.trusted_proxies",
    .meaning =
        "Addresses and blocks (10.0.0.0/8) of proxies whose X-Forwarded-For, X-Forwarded-Proto and Forwarded "
        "headers are believed. From anybody else these headers are ignored.",
    .min = 0,
    .max = 64,
}};
inline constexpr Key<std::vector<std::string>> kHosts{{
    .name = "server.hosts",
    .meaning =
        "Names by which clients reach this node, beside the host of relay.public_url. A listener on a "
        "loopback address "
        "answers only requests for these, localhost and loopback addresses (others get 421), so that no web "
        "page can "
        "lead a browser here under a name of its own. The public listener on another address checks once "
        "there is a "
        "name here or a relay.public_url, and then any IP address passes, too. A * stands for every name.",
    .min = 0,
    .max = 64,
}};
inline constexpr Key<std::int64_t> kConnectionsMax{{
    .name = "server.connections_max",
    .fallback = "10000",
    .meaning =
        "Open connections of a listener, WebSockets included. Beyond it the one goes that has said nothing "
        "for the longest time; where all have spoken, the new one gets 503. The process needs as "
        "many file descriptors, and some more (ulimit -n).",
    .min = 1,
    .max = 1'000'000,
}};
inline constexpr Key<std::int64_t> kConnectionsPerAddress{{
    .name = "limits.connections_per_address",
    .fallback = "100",
    .meaning = "Open connections of an address at the public listener; a further one gets 429 and is closed. "
               "Behind server.trusted_proxies the WebSockets of the client that the proxy names. 0, and "
               "limits.rates = off at the start: no limit.",
    .min = 0,
    .max = 1'000'000,
}};
inline constexpr Key<std::int64_t> kIpv4Prefix{{
    .name = "limits.ipv4_prefix",
    .fallback = "32",
    .meaning = "Bits of an IPv4 address that make a client, for every limit by address.",
    .min = 8,
    .max = 32,
}};
inline constexpr Key<std::int64_t> kIpv6Prefix{{
    .name = "limits.ipv6_prefix",
    .fallback = "64",
    .meaning = "Bits of an IPv6 address that make a client: a customer has all addresses of a /64 or more.",
    .min = 16,
    .max = 128,
}};
inline constexpr Key<std::chrono::milliseconds> kHeaderTimeout{{
    .name = "server.header_timeout",
    .fallback = "10s",
    .meaning = "Time from the first byte of a request to the end of its header, and for a TLS handshake. A "
               "slower client gets 408. A new connection that sends nothing for that long is closed, and a "
               "WebSocket that asks for nothing for six times that.",
    .unit = "s",
    .min = 100,
    .max = 300'000,
}};
inline constexpr Key<std::chrono::milliseconds> kDrainTimeout{{
    .name = "server.drain_timeout",
    .fallback = "2s",
    .meaning = "At shutdown: how long requests under way and WebSocket closes may take before their "
               "connections are cut.",
    .unit = "s",
    .min = 0,
    .max = 300'000,
}};
inline constexpr Key<bool> kReusePort{{
    .name = "server.reuse_port",
    .fallback = "false",
    .meaning = "Another process with the same setting may listen on server.listen and server.internal_listen "
               "at the same time "
               "(SO_REUSEPORT), so that a new node serves before the old one stops. Only with database.url.",
}};
inline constexpr Key<std::int64_t> kIoThreads{{
    .name = "server.io_threads",
    .fallback = "0",
    .meaning = "Threads that serve public connections. 0: one for every two cores, at least one.",
    .min = 0,
    .max = 64,
}};
inline constexpr Key<std::string> kRates{{
    .name = "limits.rates",
    .fallback = "on",
    .meaning =
        "Whether rate limits are in force. Off lifts every one of them: for benchmarks and trusted networks.",
    .choices = "on|off",
    .live = true,
}};
inline constexpr Key<std::string> kTraceEndpoint{{
    .name = "trace.endpoint",
    .meaning = "Base URL of an OpenTelemetry collector that takes OTLP over HTTP, such as "
               "http://127.0.0.1:4318. Empty: no "
               "traces.",
}};

}  // namespace todoke::net::keys

namespace todoke::net {

std::span<const KeySpec* const> config_keys();
Expected<void> check_config(const Config& config);

// The limits that the keys set.
NetworkPrefixes prefixes_from(const Config& config);
ServerLimits limits_from(const Config& config);
// The threads that server.io_threads means on this machine.
std::size_t io_threads_from(const Config& config, unsigned cores);

}  // namespace todoke::net
