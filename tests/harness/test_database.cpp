#include "harness/test_database.hpp"

#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "harness/run_task.hpp"
#include "pg/error.hpp"
#include "pg/migrations.hpp"

namespace todoke::test {

namespace {

constexpr std::chrono::seconds kSetupMax(60);
// Held while the template is looked for and made, so that tests that start together make it once.
constexpr pg::Statement kLockTemplate{"lock_template", "SELECT pg_advisory_lock(5011)"};
constexpr pg::Statement kTemplateExists{"template_exists", "SELECT 1 FROM pg_database WHERE datname = $1"};

std::string server_folder() {
  const char* record = std::getenv("TODOKE_TEST_POSTGRES");
  if (record == nullptr) {
    throw std::runtime_error(
        "TODOKE_TEST_POSTGRES is not set: run this test through ctest (ctest -L postgres), which starts "
        "the database server");
  }
  std::string folder;
  std::getline(std::ifstream(record), folder);
  if (folder.empty())
    throw std::runtime_error(fmt::format("{} names no database server: run through ctest", record));
  return folder;
}

std::string url_of(const std::string& folder, const std::string& database) {
  return fmt::format("host={} user=postgres dbname={}", folder, database);
}

Task<std::unique_ptr<pg::Connection>> connect_to(std::string url) {
  pg::ConnectOptions options;
  options.url = std::move(url);
  co_return co_await pg::Connection::connect(std::move(options), Deadline::after(kSetupMax));
}

std::string template_name() {
  std::string all;
  for (const auto& migration : pg::embedded_migrations()) all += pg::checksum(migration);
  const auto sum = pg::checksum(pg::Migration{0, "all", all});
  return "todoke_template_" + sum.substr(0, 16);
}

Task<void> make_template(std::string folder, std::string name) {
  const auto deadline = Deadline::after(kSetupMax);
  const auto admin = co_await connect_to(url_of(folder, "postgres"));
  co_await admin->query(kLockTemplate, {}, deadline);
  pg::Params params(name);
  const auto found = co_await admin->query(kTemplateExists, std::move(params), deadline);
  if (!found.empty()) co_return;
  // Under another name until it is whole: a run that dies half-way leaves no template that is half made.
  const auto draft = name + "_draft";
  co_await admin->execute_script(fmt::format("DROP DATABASE IF EXISTS {} WITH (FORCE)", draft), deadline);
  co_await admin->execute_script(fmt::format("CREATE DATABASE {}", draft), deadline);
  auto inside = co_await connect_to(url_of(folder, draft));
  co_await pg::migrate(*inside, pg::embedded_migrations());
  inside->close();
  co_await admin->execute_script(fmt::format("ALTER DATABASE {} RENAME TO {}", draft, name), deadline);
}

Task<void> run_script(std::string url, std::string sql) {
  const auto connection = co_await connect_to(std::move(url));
  co_await connection->execute_script(std::move(sql), Deadline::after(kSetupMax));
}

void tell_clone_time(std::chrono::steady_clock::duration took) {
  static bool told = false;
  if (std::exchange(told, true)) return;
  const auto ms = std::chrono::duration<double, std::milli>(took).count();
  std::cout << fmt::format("[ database ] cloned in {:.0f} ms\n", ms);
}

}  // namespace

TestDatabase::TestDatabase() : folder_(server_folder()), name_("todoke_test_" + random_hex(8)) {
  static const std::string from = [this] {
    auto name = template_name();
    run_task([&] { return make_template(folder_, name); });
    return name;
  }();
  const auto began = std::chrono::steady_clock::now();
  const auto sql = fmt::format("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy", name_, from);
  run_task([&] { return run_script(url_of(folder_, "postgres"), sql); });
  tell_clone_time(std::chrono::steady_clock::now() - began);
  url_ = url_of(folder_, name_);
}

TestDatabase::~TestDatabase() {
  if (name_.empty()) return;
  try {
    const auto sql = fmt::format("DROP DATABASE {} WITH (FORCE)", name_);
    run_task([&] { return run_script(url_of(folder_, "postgres"), sql); });
  } catch (...) {
    std::cerr << "dropping the test database failed: " << describe(std::current_exception()) << '\n';
  }
}

Task<std::unique_ptr<pg::Connection>> TestDatabase::connect() const {
  return connect_to(url_);
}

void TestDatabase::execute(const std::string& sql) const {
  run_task([&] { return run_script(url_, sql); });
}

}  // namespace todoke::test
