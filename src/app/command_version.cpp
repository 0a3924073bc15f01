#include <cstdio>

#include <boost/version.hpp>
#include <fmt/format.h>
#include <libpq-fe.h>
#include <openssl/crypto.h>

#include "app/command.hpp"
#include "app/version.hpp"

namespace todoke::app {
namespace {

int run(const Arguments& /*arguments*/) {
  const auto text =
      fmt::format("todoke {}\nlibpq {}.{}, {}, Boost {}.{}, {}\n", kVersion, PQlibVersion() / 10000,
                  PQlibVersion() % 10000, OpenSSL_version(OPENSSL_VERSION), BOOST_VERSION / 100000,
                  BOOST_VERSION / 100 % 1000, "GCC " __VERSION__);
  std::fputs(text.c_str(), stdout);
  return 0;
}

const Registration kRegistered(Command{.name = "version",
                                       .summary = "print the version of todoke and of what it is built with",
                                       .synopsis = "",
                                       .run = run});

}  // namespace
}  // namespace todoke::app
