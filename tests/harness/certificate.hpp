// A self-signed certificate for 127.0.0.1 and localhost in files of its own, made with the openssl command.
#pragma once

#include <string>

namespace todoke::net::test {

class TestCertificate {
 public:
  TestCertificate();
  ~TestCertificate();
  TestCertificate(const TestCertificate&) = delete;
  TestCertificate& operator=(const TestCertificate&) = delete;

  // Makes another key and certificate in the same files.
  void renew(const std::string& common_name);
  // Puts an RSA key in the place of the key; the certificate, which is for an EC key, stays.
  void replace_key_by_rsa();

  [[nodiscard]] std::string cert() const { return folder_ + "/cert.pem"; }
  [[nodiscard]] std::string key() const { return folder_ + "/key.pem"; }

 private:
  std::string folder_;
};

// Runs a command line; its standard output. Throws when it fails.
std::string run_command(const std::string& command);

}  // namespace todoke::net::test
