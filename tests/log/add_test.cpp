// `todoke consumers add`: what it makes, what it prints and what it refuses.
#include <csignal>
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "log/rig.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(ConsumersAdd, PrintsOnlyAConnectionStringThatWorksOnStandardOutput) {
  const LogNode node(Tcp::plain);
  const auto exit = node.todoke({"consumers", "add", "one"});
  EXPECT_EQ(exit.code, 0) << exit.err;
  EXPECT_THAT(exit.out, testing::MatchesRegex(fmt::format(
                            "postgresql://consumer_one:[0-9a-f]+@127.0.0.1:{}/todoke\n", node.port())));
  EXPECT_EQ(SqlSession(exit.out.substr(0, exit.out.size() - 1)).value("SELECT current_user"), "consumer_one");
  EXPECT_THAT(exit.err, HasSubstr("consumer one, role consumer_one, after seq 0"));

  EXPECT_THAT(node.add("afar", {"--log.advertise", "log.example.org:6000"}),
              HasSubstr("@log.example.org:6000/todoke"));
  EXPECT_THAT(node.add("afar-6", {"--log.advertise", "[2001:db8::1]:6000"}),
              HasSubstr("@[2001:db8::1]:6000/todoke"));
  EXPECT_THAT(node.todoke({"consumers", "add", "nowhere", "--log.advertise", "nonsense"}).err,
              HasSubstr("log.advertise"));
}

TEST(ConsumersAdd, BeginsWhereItIsToldAndWaitsForNobodyUnlessMandatory) {
  LogNode node(Tcp::plain);
  node.append_by_sql(10);
  static_cast<void>(node.add("from-start"));
  static_cast<void>(node.add("from-head", {"--from", "head", "--mandatory"}));
  static_cast<void>(node.add("from-seq", {"--from", "4"}));
  EXPECT_EQ(node.sql("SELECT consumer, last_seq, mandatory FROM cn_relay.consumer_offsets WHERE consumer "
                     "LIKE 'from-%' ORDER BY 1"),
            "from-head|10|t\nfrom-seq|4|f\nfrom-start|0|f");
  EXPECT_THAT(node.todoke({"consumers", "add", "late", "--from", "11"}).err, HasSubstr("the log ends at 10"));
  node.sql("UPDATE cn_relay.log_floor SET dropped_until = 6");
  EXPECT_THAT(node.todoke({"consumers", "add", "early", "--from", "5"}).err,
              HasSubstr("rows up to 6 have been dropped"));
  static_cast<void>(node.add("fresh"));
  EXPECT_EQ(node.sql("SELECT last_seq FROM cn_relay.consumer_offsets WHERE consumer = 'fresh'"), "6");
  EXPECT_EQ(node.sql("SELECT count(*) FROM pg_roles WHERE rolname IN ('consumer_late', 'consumer_early')"),
            "0");
}

TEST(ConsumersAdd, ASecondTimeIsRefusedAndRenewGivesANewPassword) {
  LogNode node(Tcp::plain);
  const auto first = node.add("one", {"--mandatory"});
  SqlSession(first).run("UPDATE consumer_offsets SET last_seq = 5");
  const auto again = node.todoke({"consumers", "add", "one"});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("the consumer one is there already: --renew gives it a new password"));
  const auto second = node.add("one", {"--renew"});
  EXPECT_THAT(refusal(first), HasSubstr("password authentication failed"));
  EXPECT_EQ(SqlSession(second).value("SELECT last_seq FROM consumer_offsets WHERE mandatory"), "5");
  EXPECT_THAT(node.todoke({"consumers", "add", "two", "--renew"}).err, HasSubstr("there is no consumer two"));
  EXPECT_EQ(node.todoke({"consumers", "add", "one", "--renew", "--mandatory"}).code, 2);
}

TEST(ConsumersAdd, TakesNoNameThatIsTakenOrDoesNotFit) {
  LogNode node(Tcp::plain);
  for (const auto& name :
       {std::string("Upper"), std::string("a b"), std::string("a\"b"), std::string(55, 'a')}) {
    EXPECT_THAT(node.todoke({"consumers", "add", name}).err, HasSubstr("is no name for a consumer")) << name;
  }
  EXPECT_EQ(node.todoke({"consumers", "add"}).code, 2);
  EXPECT_EQ(node.todoke({"consumers"}).code, 2);
  SqlSession(node.add(std::string(54, 'a'))).run("SELECT 1 FROM consumer_offsets");

  node.sql("INSERT INTO cn_relay.consumer_offsets (consumer, last_seq, epoch) VALUES ('inside', 0, 3)");
  for (const auto* more : {"--mandatory", "--renew"}) {
    EXPECT_THAT(node.todoke({"consumers", "add", "inside", more}).err,
                HasSubstr("a consumer of the node itself"));
  }
  node.sql("INSERT INTO cn_relay.consumer_offsets (consumer, last_seq) VALUES ('by-hand', 0)");
  EXPECT_THAT(node.todoke({"consumers", "add", "by-hand"}).err,
              HasSubstr("without a role: --renew makes one"));
  EXPECT_EQ(SqlSession(node.add("by-hand", {"--renew"})).value("SELECT consumer FROM consumer_offsets"),
            "by-hand");
  node.sql("CREATE ROLE consumer_other LOGIN SUPERUSER");
  EXPECT_THAT(node.todoke({"consumers", "add", "other"}).err,
              HasSubstr("the role consumer_other is there already"));
  EXPECT_THAT(node.todoke({"consumers", "add", "other", "--renew"}).err, HasSubstr("is no consumer"));
}

TEST(ConsumersAdd, WithoutTcpGivesTheSocketAndOnAConfiguredDatabaseNeedsTheRightToMakeRoles) {
  LogNode node(Tcp::closed);
  const auto exit = node.todoke({"consumers", "add", "here"});
  EXPECT_EQ(exit.code, 0) << exit.err;
  EXPECT_THAT(exit.err, HasSubstr("log.listen"));
  EXPECT_EQ(
      SqlSession(exit.out.substr(0, exit.out.size() - 1)).value("SELECT consumer FROM consumer_offsets"),
      "here");

  // A database of somebody else's server: the embedded one by its socket, as a user with few rights.
  node.sql("CREATE ROLE owner LOGIN PASSWORD 'secret'");
  node.sql("CREATE DATABASE elsewhere OWNER owner");
  const auto run_folder = (node.folder().path() / "run").string();
  const auto url = fmt::format("postgresql://owner:secret@/elsewhere?host={}&port=5432", run_folder);
  const auto add = [&](const std::string& name) {
    return run_command({todoke_binary(), "consumers", "add", name}, {"DATABASE_URL=" + url});
  };
  EXPECT_THAT(add("there").err, HasSubstr("`todoke migrate` or a start applies them"));
  const auto migrated = run_command({todoke_binary(), "migrate"}, {"DATABASE_URL=" + url});
  ASSERT_EQ(migrated.code, 0) << migrated.err;
  const auto refused = add("there");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("the database user owner may not make roles"));
  EXPECT_EQ(node.sql("SELECT count(*) FROM pg_roles WHERE rolname = 'consumer_there'"), "0");

  node.sql("ALTER ROLE owner CREATEROLE");
  const auto added = add("there");
  ASSERT_EQ(added.code, 0) << added.err;
  const auto there = added.out.substr(0, added.out.size() - 1);
  EXPECT_THAT(there, StartsWith("postgresql://consumer_there:"));
  SqlSession session(there);
  EXPECT_EQ(session.value("SELECT current_database()"), "elsewhere");
  EXPECT_EQ(session.value("SELECT consumer FROM consumer_offsets"), "there");
  auto across = there;
  across.replace(across.find("/elsewhere"), 10, "/todoke");
  EXPECT_EQ(SqlSession(across).tried("SELECT 1 FROM cn_relay.events_outbox"), "42501")
      << "a consumer of one database reads no other";
  EXPECT_THAT(add("here").err, HasSubstr("of another database of this cluster"));
}

TEST(LogListen, OpensAndClosesWithoutLosingTheSocket) {
  LogNode node(Tcp::plain);
  const auto url = node.add("one");
  node.stop();
  node.start(Tcp::closed);
  EXPECT_THAT(refusal(url), HasSubstr("onnection refused"));
  EXPECT_EQ(node.sql("SHOW listen_addresses"), "");
  node.stop();
  node.start(Tcp::tls);
  EXPECT_EQ(node.sql("SHOW ssl"), "on");
  EXPECT_EQ(SqlSession(node.add("one", {"--renew"})).value("SELECT 1"), "1");
}

TEST(LogListen, ANewCertificateIsTakenAtSighupAndAWrongOneIsNot) {
  LogNode node(Tcp::tls);
  const auto url = node.add("one");
  const auto with_root = [&](const std::string& root) {
    auto checked = url;
    checked.replace(checked.find("sslmode=require"), 15, "sslmode=verify-ca&sslrootcert=" + root);
    return checked;
  };
  const auto reload = [&](const std::string& told) {
    node.process().kill(SIGHUP);
    node.process().wait_for_output(told);
  };
  ASSERT_EQ(refusal(with_root(node.certificate().cert())), "");
  const net::test::TestCertificate next;
  // A node that root has started reads them as another user now.
  using std::filesystem::perms;
  const auto allow = [](const std::string& path, perms more) {
    std::filesystem::permissions(path, more, std::filesystem::perm_options::add);
  };
  allow(std::filesystem::path(node.certificate().key()).parent_path(), perms::others_exec);
  allow(node.certificate().key(), perms::others_read);
  const auto copy = [&](const std::string& from, const std::string& to) {
    std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
    allow(to, perms::others_read);
  };
  copy(next.cert(), node.certificate().cert());
  reload("is not the key of");
  EXPECT_EQ(refusal(url), "");
  EXPECT_NE(refusal(with_root(next.cert())), "");
  copy(next.key(), node.certificate().key());
  reload("certificate read again");
  wait_until("the new certificate", [&] { return refusal(with_root(next.cert())).empty(); });
}

TEST(LogListen, WrongValuesEndTheStartWithALineThatSaysSo) {
  const TempFolder folder;
  const auto up = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {todoke_binary(), "up", "--data_dir", folder.path().string(), "--server.listen",
                               "127.0.0.1:0", "--server.internal_listen", "127.0.0.1:0"});
    return run_command(more);
  };
  const auto port = free_port();
  const auto listen = fmt::format("127.0.0.1:{}", port);
  EXPECT_THAT(up({"--log.listen", "nonsense"}).err, HasSubstr("log.listen: 'nonsense' is no host:port"));
  EXPECT_THAT(up({"--log.listen", listen, "--log.tls_cert", "/cert"}).err, HasSubstr("belong together"));
  EXPECT_THAT(up({"--log.listen", listen, "--log.tls_cert", "/no/cert", "--log.tls_key", "/no/key"}).err,
              HasSubstr("log.tls_cert: /no/cert can't be read"));
  const net::test::TestCertificate one;
  const net::test::TestCertificate other;
  EXPECT_THAT(up({"--log.listen", listen, "--log.tls_cert", one.cert(), "--log.tls_key", other.key()}).err,
              HasSubstr("is not the key of"));
  LogNode node(Tcp::plain);
  const auto taken = up({"--log.listen", fmt::format("127.0.0.1:{}", node.port())});
  EXPECT_EQ(taken.code, 1);
  EXPECT_THAT(taken.err, HasSubstr("log.listen: can't listen on"));
}

TEST(LogListen, DoctorWarnsOfContentInTheClear) {
  const TempFolder folder;
  const auto doctor = [&](const std::string& listen) {
    return run_command(
        {todoke_binary(), "doctor", "--data_dir", folder.path().string(), "--log.listen", listen});
  };
  EXPECT_THAT(doctor("127.0.0.1:5433").out, HasSubstr("ok    log.listen     127.0.0.1:5433"));
  EXPECT_THAT(doctor("*:5433").out, HasSubstr("warn  log.listen     *:5433, without TLS"));
  EXPECT_EQ(doctor("nonsense").code, 1);
}

}  // namespace
}  // namespace todoke::test
