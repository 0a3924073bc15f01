// A node that stops while clients are at work answers what it has read, tells them to come back, and leaves
// no gap: neither for publishers nor for subscribers.
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faults/publisher.hpp"
#include "faults/rig.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::uint16_t kServiceRestart = 1012;

// How connections of clients ended.
class Ends {
 public:
  void add(std::uint16_t code) {
    const std::lock_guard lock(mutex_);
    codes_.insert(code);
  }
  std::multiset<std::uint16_t> codes() {
    const std::lock_guard lock(mutex_);
    return codes_;
  }

 private:
  std::mutex mutex_;
  std::multiset<std::uint16_t> codes_;
};

// A client that comes back whenever its connection ends.
class LastingClient {
 public:
  LastingClient(std::string url, Ends& ends) : url_(std::move(url)), ends_(ends) {}

  // Until it has worked once; a connection that ends meanwhile is made anew.
  template <class Work>
  void insist(Work work) {
    for (;;) {
      try {
        if (!client_) client_ = std::make_unique<NostrClient>(url_);
        return work(*client_);
      } catch (const std::runtime_error&) {
        if (client_) ends_.add(client_->close_code());
        client_.reset();
      }
    }
  }

 private:
  std::string url_;
  Ends& ends_;
  std::unique_ptr<NostrClient> client_;
};

// Publishes one event after the other and sends each again until it is acknowledged.
class LastingPublisher {
 public:
  LastingPublisher(const std::string& url, Ends& ends) : thread_([this, url, &ends] { run(url, ends); }) {}
  ~LastingPublisher() { finish(); }
  LastingPublisher(const LastingPublisher&) = delete;
  LastingPublisher& operator=(const LastingPublisher&) = delete;

  [[nodiscard]] std::size_t accepted() const { return accepted_; }
  const std::set<std::string>& finish() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return ids_;
  }

 private:
  void run(const std::string& url, Ends& ends) {
    LastingClient client(url, ends);
    const auto key = nostr::SecretKey::generate();
    while (!stop_) {
      const auto event = note(key, std::to_string(ids_.size()));
      client.insist([&](NostrClient& connected) {
        while (!connected.publish(event).accepted) {
        }
      });
      ids_.insert(event.id().hex());
      ++accepted_;
    }
  }

  std::set<std::string> ids_;
  std::atomic<std::size_t> accepted_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

// Follows a topic, resumes by the cursor of the last EOSE, and ends when it has seen the event `last`.
class LastingSubscriber {
 public:
  LastingSubscriber(const std::string& url, std::string last, Ends& ends)
      : last_(std::move(last)), thread_([this, url, &ends] { run(url, ends); }) {}
  ~LastingSubscriber() { finish(); }
  LastingSubscriber(const LastingSubscriber&) = delete;
  LastingSubscriber& operator=(const LastingSubscriber&) = delete;

  [[nodiscard]] bool has_begun() const { return begun_; }
  const std::set<std::string>& finish() {
    if (thread_.joinable()) thread_.join();
    return seen_;
  }

 private:
  void run(const std::string& url, Ends& ends) {
    LastingClient client(url, ends);
    client.insist([this](NostrClient& connected) {
      for (bool more = true; more;) {
        const auto page =
            connected.request("s", fmt::format(R"({{"#t":["kukuri:global"],"seq_after":{}}})", cursor_));
        seen_.insert(page.ids.begin(), page.ids.end());
        cursor_ = page.cursor();
        more = page.has_more();
      }
      begun_ = true;
      while (!seen_.contains(last_)) seen_.insert(id_in(connected.live("s")));
    });
  }

  std::string last_;
  std::int64_t cursor_ = 0;
  std::set<std::string> seen_;
  std::atomic<bool> begun_ = false;
  std::thread thread_;
};

TEST(Restart, UnderLoadStoresEveryEventOnceAndSubscribersResumeWithoutAGap) {
  constexpr std::size_t kPublishers = 4;
  constexpr std::size_t kSubscribers = 3;
  constexpr std::size_t kEvents = 200;
  const TempFolder folders[3];
  RelayProcess server(folders[0].path());
  SqlSession database(conninfo_of(folders[0].path()));
  database.run("CREATE DATABASE shared");
  const auto conninfo = "host=" + (folders[0].path() / "run").string() + " user=todoke dbname=shared";
  const std::vector<std::string> environment{"DATABASE_URL=" + conninfo};
  const std::vector<std::string> shared{"--server.reuse_port", "true", "--server.drain_timeout", "60s"};
  auto old = std::make_unique<RelayProcess>(folders[1].path(), shared, environment);
  const auto address = old->public_address();
  const auto last = note(nostr::SecretKey::generate(), "the last one");

  Ends ends;
  std::vector<std::unique_ptr<LastingSubscriber>> subscribers;
  for (std::size_t i = 0; i < kSubscribers; ++i)
    subscribers.push_back(std::make_unique<LastingSubscriber>(old->url(), last.id().hex(), ends));
  for (const auto& subscriber : subscribers)
    wait_until("a subscription", [&] { return subscriber->has_begun(); });
  std::vector<std::unique_ptr<LastingPublisher>> publishers;
  for (std::size_t i = 0; i < kPublishers; ++i)
    publishers.push_back(std::make_unique<LastingPublisher>(old->url(), ends));
  const auto wait_for_each = [&](std::size_t count) {
    for (const auto& publisher : publishers)
      wait_until("accepted events", [&] { return publisher->accepted() >= count; });
  };
  wait_for_each(kEvents);

  auto more = shared;
  more.insert(more.end(), {"--server.listen", address});
  RelayProcess fresh(folders[2].path(), more, environment);
  EXPECT_EQ(fresh.public_address(), address);
  const auto exit = old->stop();
  EXPECT_EQ(exit.code, 0) << exit.err;
  EXPECT_THAT(exit.err, Not(HasSubstr("connections cut")));
  std::size_t most = 0;
  for (const auto& publisher : publishers) most = std::max(most, publisher->accepted());
  wait_for_each(most + kEvents);

  std::set<std::string> accepted;
  for (const auto& publisher : publishers) accepted.merge(std::set<std::string>(publisher->finish()));
  NostrClient client(fresh.url());
  ASSERT_TRUE(client.publish(last).accepted);
  accepted.insert(last.id().hex());
  for (const auto& subscriber : subscribers) EXPECT_EQ(subscriber->finish(), accepted);
  SqlSession stored(conninfo);
  EXPECT_EQ(stored_ids(stored), accepted);
  EXPECT_EQ(problems_in_store(stored), "");
  const auto codes = ends.codes();
  EXPECT_GT(codes.count(kServiceRestart), 0U);
}

TEST(Restart, WhatWasReadIsAnsweredBeforeTheConnectionEndsWith1012) {
  const TempFolder folder;
  RelayProcess node(folder.path(), {"--server.drain_timeout", "60s", "--relay.query_timeout", "60s"});
  const auto key = nostr::SecretKey::generate();
  NostrClient client(node.url());
  NostrClient idle(node.url());
  const auto stored = note(key, "stored");
  ASSERT_TRUE(client.publish(stored).accepted);

  SqlSession holder(conninfo_of(folder.path()));
  holder.run("BEGIN; LOCK TABLE cn_relay.events, cn_relay.event_topics IN ACCESS EXCLUSIVE MODE");
  std::vector<std::string> waiting;
  for (int i = 0; i < 3; ++i) {
    const auto event = note(key, "waits " + std::to_string(i));
    waiting.push_back(event.id().hex());
    client.send("[\"EVENT\"," + std::string(event.json()) + "]");
  }
  client.send(R"(["REQ","r",{"ids":[")" + stored.id().hex() + R"("],"#t":["kukuri:global"]}])");
  client.send(R"(["COUNT","c",{"#t":["kukuri:global"],"authors":[")" + key.pubkey().hex() + R"("]}])");
  node.wait_for_metric("todoke_reads_under_way", 1);
  node.wait_for_metric("todoke_counts_under_way", 1);
  node.process().kill(SIGTERM);
  node.process().wait_for_output("\"msg\":\"stopping\"");
  holder.run("COMMIT");

  std::set<std::string> answered;
  std::string all;
  while (const auto message = client.receive_or_end()) {
    if (message->starts_with("[\"OK\"")) answered.insert(parse_ok(*message).id);
    all += *message + "\n";
  }
  EXPECT_EQ(answered, std::set<std::string>(waiting.begin(), waiting.end())) << all;
  EXPECT_THAT(all, HasSubstr(stored.id().hex()));
  EXPECT_THAT(all, HasSubstr(R"(["EOSE","r")"));
  EXPECT_THAT(all, HasSubstr(R"(["COUNT","c")"));
  EXPECT_EQ(client.close_code(), kServiceRestart);
  while (idle.receive_or_end()) {
  }
  EXPECT_EQ(idle.close_code(), kServiceRestart);
  EXPECT_EQ(node.process().wait().code, 0);
}

TEST(Restart, AnEmbeddedDatabaseAndASharedPortExcludeEachOther) {
  const TempFolder folder;
  const auto exit =
      run_command({todoke_binary(), "run", "--data_dir", folder.path().string(), "--server.reuse_port",
                   "true", "--server.listen", "127.0.0.1:0", "--server.internal_listen", "127.0.0.1:0"});
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(exit.err, HasSubstr("server.reuse_port needs database.url"));
}

}  // namespace
}  // namespace todoke::test
