#include <boost/version.hpp>
#include <fmt/format.h>
#include <libpq-fe.h>
#include <openssl/crypto.h>

#include "app/commands.hpp"
#include "app/version.hpp"
#include "gossip/endpoint.hpp"

namespace todoke::app {
namespace {

int run_version(const Arguments& /*arguments*/) {
  const auto text =
      fmt::format("todoke {}\nlibpq {}.{}, {}, Boost {}.{}, {}\ngossip {}\n", kVersion,
                  PQlibVersion() / 10000, PQlibVersion() % 10000, OpenSSL_version(OPENSSL_VERSION),
                  BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, "GCC " __VERSION__,
                  gossip::left_out().empty() ? "built in" : fmt::format("left out: {}", gossip::left_out()));
  print(text);
  return 0;
}

}  // namespace

Command version_command() {
  return {.name = "version",
          .summary = "print the version of todoke and of what it is built with",
          .synopsis = "",
          .run = run_version};
}

}  // namespace todoke::app
