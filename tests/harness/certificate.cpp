#include "harness/certificate.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include <fmt/format.h>

namespace todoke::net::test {

std::string run_command(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("can't run " + command);
  std::string output;
  char buffer[4096];
  while (const auto n = std::fread(buffer, 1, sizeof(buffer), pipe)) output.append(buffer, n);
  const int status = ::pclose(pipe);
  if (status != 0) throw std::runtime_error(fmt::format("status {} of: {}\n{}", status, command, output));
  return output;
}

TestCertificate::TestCertificate() {
  auto pattern = (std::filesystem::temp_directory_path() / "todoke-cert-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr)
    throw std::runtime_error("can't make a folder for the certificate");
  folder_ = pattern;
  renew("first");
}

TestCertificate::~TestCertificate() {
  std::error_code ignored;  // a leftover in the temporary folder harms nobody
  std::filesystem::remove_all(folder_, ignored);
}

void TestCertificate::renew(const std::string& common_name) {
  run_command(
      fmt::format("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN={} "
                  "-addext subjectAltName=IP:127.0.0.1,DNS:localhost -keyout {} -out {} 2>&1",
                  common_name, key(), cert()));
}

void TestCertificate::replace_key_by_rsa() {
  run_command(
      fmt::format("openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out {} 2>&1", key()));
}

}  // namespace todoke::net::test
