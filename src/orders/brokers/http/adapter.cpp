#include "orders/brokers/http/adapter.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/percent.hpp"
#include "orders/brokers/http/answer.hpp"
#include "orders/brokers/http/config.hpp"
#include "orders/core/canonical.hpp"

namespace todoke::orders {
namespace {

constexpr std::string_view kKeyMark = "{key}";
// An answer holds a few hundred bytes, and a thousand fills at most.
constexpr std::size_t kAnswerBytesMax = 256 * 1024;
constexpr std::size_t kTokenBytesMax = 8 * 1024;

Expected<std::string> read_token(const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  std::string token{std::istreambuf_iterator<char>(file), {}};
  if (!file && token.empty()) return refuse(fmt::format("orders.http.token_file: {} can't be read", path));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  const bool is_visible =
      std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  if (token.empty() || token.size() > kTokenBytesMax || !is_visible) {
    return refuse(fmt::format("orders.http.token_file: {} must hold one token", path));
  }
  return token;
}

std::string url_for(std::string url, const std::string& key) {
  const auto encoded = percent_encode(key);
  for (auto at = url.find(kKeyMark); at != std::string::npos; at = url.find(kKeyMark, at + encoded.size())) {
    url.replace(at, kKeyMark.size(), encoded);
  }
  return url;
}

}  // namespace

Expected<HttpAdapterOptions> HttpAdapterOptions::from(const Config& config, std::size_t connections) {
  HttpAdapterOptions options;
  if (config.get(keys::kHttpUrl).empty()) {
    return refuse("orders.http.url: say where the broker of broker.adapter = http is");
  }
  const auto url = net::parse_url(config.get(keys::kHttpUrl));
  if (!url) return refuse(fmt::format("orders.http.url: {}", url.error().message));
  options.url = *url;
  if (const auto& find_url = config.get(keys::kHttpFindUrl); !find_url.empty()) {
    if (find_url.find(kKeyMark) == std::string::npos) {
      return refuse("orders.http.find_url: {key} must stand in it, in the place of the order's key");
    }
    if (const auto parsed = net::parse_url(url_for(find_url, "key")); !parsed) {
      return refuse(fmt::format("orders.http.find_url: {}", parsed.error().message));
    }
    options.find_url = find_url;
  }
  auto token = read_token(config.get(keys::kHttpTokenFile));
  if (!token) return refuse(token.error().message);
  options.token = std::move(*token);
  options.client.ca_file = config.get(keys::kHttpCaFile);
  options.client.body_bytes_max = kAnswerBytesMax;
  options.client.idle_per_host_max = connections;
  options.client.idle_total_max = 2 * connections;
  return options;
}

HttpAdapter::HttpAdapter(const Executor& executor, HttpAdapterOptions options)
    : options_(std::move(options)), client_(executor, options_.client) {}

void HttpAdapter::authorize(net::ClientRequest& request) const {
  if (!options_.token.empty()) request.headers.set("Authorization", "Bearer " + options_.token);
  request.headers.set("Accept", "application/json");
}

Task<SendOutcome> HttpAdapter::send(SendRequest request, Deadline deadline) {
  net::ClientRequest post;
  post.method = "POST";
  post.url = options_.url;
  if (request.trace.valid()) post.trace = request.trace;
  post.body = stored_json(*request.order);
  post.headers.set("Content-Type", "application/json");
  post.headers.set("Idempotency-Key", request.idempotency_key);
  if (request.possible_resend) post.headers.set("Possible-Resend", "true");
  authorize(post);
  post.may_go = request.may_go;
  std::optional<SendOutcome> failed;
  net::Response response;
  try {
    response = co_await client_.send(std::move(post), deadline);
  } catch (const net::ClientError& error) {
    failed = read_send_failure(error);
  }
  if (failed) co_return std::move(*failed);
  co_return read_send_answer(response, *request.order);
}

Task<FindOutcome> HttpAdapter::find(SendRequest request, Deadline deadline) {
  net::ClientRequest get;
  get.url = net::parse_url(url_for(*options_.find_url, request.idempotency_key)).value();
  if (request.trace.valid()) get.trace = request.trace;
  get.repeatable = true;
  authorize(get);
  FindOutcome failed;
  net::Response response;
  try {
    response = co_await client_.send(std::move(get), deadline);
  } catch (const net::ClientError& error) {
    failed.message = error.what();
  }
  if (!failed.message.empty()) co_return failed;
  co_return read_find_answer(response, *request.order);
}

}  // namespace todoke::orders
