// What the embedded Postgres can be told.
#pragma once

#include <span>
#include <string>

#include "base/config.hpp"

namespace todoke::embedded {

inline constexpr Key<std::string> kUser{{
    .name = "server.user",
    .fallback = "",
    .meaning = "Whom a node that is started as root becomes once it has its ports, certificates and tokens; "
               "its Postgres runs as the same "
               "user. Empty: the owner of the data folder where that is not root, else todoke where there is "
               "such a user, else postgres. "
               "root: the node stays root, for containers without another user; its Postgres does not. "
               "Started as any other user, the "
               "node stays that user.",
}};

inline constexpr Key<std::string> kBinDir{{
    .name = "database.embedded_bin_dir",
    .type = KeyType::path,
    .fallback = "",
    .meaning =
        "The folder with the programs of Postgres (initdb, postgres). Empty: the fitting version under "
        "/usr/lib/postgresql.",
}};

inline constexpr Key<std::string> kLogListen{{
    .name = "log.listen",
    .fallback = "",
    .meaning =
        "host:port on which the embedded Postgres takes connections of outside consumers of the log "
        "(`todoke consumers add`), with scram-sha-256; *:5433 is every address. Empty: no TCP. A database of "
        "one's own (database.url) is opened by its own means.",
}};

inline constexpr Key<std::string> kLogAdvertise{{
    .name = "log.advertise",
    .fallback = "",
    .meaning =
        "host:port that connection strings for consumers name, where others reach the database under another "
        "address than log.listen or database.url.",
}};

inline constexpr Key<std::string> kLogTlsCert{{
    .name = "log.tls_cert",
    .type = KeyType::path,
    .fallback = "",
    .meaning = "PEM file with the certificate for log.listen and its chain. Set, connections without TLS are "
               "refused. "
               "Set together with log.tls_key; read at each start.",
}};

inline constexpr Key<std::string> kLogTlsKey{{
    .name = "log.tls_key",
    .type = KeyType::path,
    .fallback = "",
    .meaning = "PEM file with the private key that belongs to log.tls_cert.",
}};

std::span<const KeySpec* const> config_keys();

struct Options {
  std::string data_dir;
  std::string user{kUser.spec.fallback};
  std::string bin_dir;
  std::string listen{};
  std::string tls_cert{};
  std::string tls_key{};
};

// `data_dir` is a key of the whole node.
Options options_from(const Config& config, std::string data_dir);

}  // namespace todoke::embedded
