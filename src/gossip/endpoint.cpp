#include "gossip/endpoint.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace todoke::gossip {

std::string_view left_out() {
  return TODOKE_GOSSIP_LEFT_OUT;
}

}  // namespace todoke::gossip

#if __has_include(<todoke_iroh.h>)
#include <todoke_iroh.h>

namespace todoke::gossip {
namespace {

// One that decrypts, one that keeps timers and the rest going.
constexpr std::uint32_t kThreads = 2;
constexpr std::size_t kErrorBytesMax = 512;
constexpr std::size_t kAddressBytesMax = 4096;

template <class Id>
Id id_at(const std::uint8_t* bytes) {
  typename Id::Bytes copy{};
  std::copy_n(bytes, copy.size(), copy.begin());
  return Id(copy);
}

template <class Id>
std::vector<std::uint8_t> joined(std::span<const Id> ids) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(ids.size() * Id::kSize);
  for (const auto& id : ids) bytes.insert(bytes.end(), id.bytes().begin(), id.bytes().end());
  return bytes;
}

std::string_view bytes_of(const todoke_iroh_event& event) {
  return {reinterpret_cast<const char*>(event.bytes), event.size};
}

void tell(void* context, const todoke_iroh_event* event) {
  auto& listener = *static_cast<EndpointListener*>(context);
  switch (event->kind) {
    case TODOKE_IROH_MESSAGE:
      return listener.on_message(id_at<ChannelId>(event->topic), id_at<NodeId>(event->peer),
                                 bytes_of(*event));
    case TODOKE_IROH_NEIGHBOUR_UP:
    case TODOKE_IROH_NEIGHBOUR_DOWN:
      return listener.on_neighbour(id_at<ChannelId>(event->topic), id_at<NodeId>(event->peer),
                                   event->kind == TODOKE_IROH_NEIGHBOUR_UP);
    case TODOKE_IROH_LAGGED:
      return listener.on_lag(id_at<ChannelId>(event->topic));
    case TODOKE_IROH_ENDED:
      return listener.on_ended(id_at<ChannelId>(event->topic));
    case TODOKE_IROH_KNOWN:
      return listener.on_known(id_at<NodeId>(event->peer));
    case TODOKE_IROH_QUESTION:
      return listener.on_question(id_at<NodeId>(event->peer), event->number, bytes_of(*event));
    case TODOKE_IROH_ANSWER:
      return listener.on_answer(event->number, bytes_of(*event));
    case TODOKE_IROH_UNANSWERED:
      return listener.on_answer(event->number, std::nullopt);
    default:
      return;  // a name that could not be resolved is dialled again in time
  }
}

}  // namespace

struct Endpoint::Handle {
  todoke_iroh* node;
};

std::unique_ptr<Endpoint> Endpoint::start(const EndpointOptions& options, EndpointListener& listener) {
  const auto relays = fmt::format("{}", fmt::join(options.relays, " "));
  const todoke_iroh_options given{
      .secret_key = options.secret_key.data(),
      .bind = options.listen.c_str(),
      .relays = relays.c_str(),
      .threads = kThreads,
      .message_bytes_max = static_cast<std::uint32_t>(options.message_bytes_max),
      .connections_max = static_cast<std::uint32_t>(options.connections_max),
      .on_event = tell,
      .context = &listener,
  };
  std::int32_t why = 0;
  std::array<char, kErrorBytesMax> error{};
  auto* node = todoke_iroh_start(&given, &why, error.data(), error.size());
  if (node == nullptr) {
    const auto text = fmt::format("gossip can't listen on {} (UDP): {}", options.listen, error.data());
    if (why == TODOKE_IROH_ADDRESS_IN_USE) throw AddressInUse(text);
    throw UserError(text);
  }
  return std::unique_ptr<Endpoint>(new Endpoint(new Handle{node}));
}

Endpoint::~Endpoint() {
  todoke_iroh_stop(handle_->node);
  delete handle_;
}

std::vector<std::string> Endpoint::addresses() const {
  std::string text(kAddressBytesMax, '\0');
  text.resize(todoke_iroh_addresses(handle_->node, text.data(), text.size()));
  std::vector<std::string> addresses;
  for (std::size_t from = 0; from < text.size();) {
    const auto end = std::min(text.find(' ', from), text.size());
    addresses.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return addresses;
}

void Endpoint::dial(const NodeId& peer, const std::string& address) {
  todoke_iroh_dial(handle_->node, peer.bytes().data(), address.c_str());
}

void Endpoint::forget(const NodeId& peer) {
  todoke_iroh_forget(handle_->node, peer.bytes().data());
}

void Endpoint::block(std::span<const NodeId> peers) {
  todoke_iroh_block(handle_->node, joined(peers).data(), peers.size());
}

bool Endpoint::join(const ChannelId& channel, std::span<const NodeId> peers) {
  return todoke_iroh_join(handle_->node, channel.bytes().data(), joined(peers).data(), peers.size());
}

void Endpoint::leave(const ChannelId& channel) {
  todoke_iroh_leave(handle_->node, channel.bytes().data());
}

Sent Endpoint::send(const ChannelId& channel, std::string_view bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  switch (todoke_iroh_send(handle_->node, channel.bytes().data(), data, bytes.size())) {
    case TODOKE_IROH_SENT:
      return Sent::taken;
    case TODOKE_IROH_FULL:
      return Sent::full;
    case TODOKE_IROH_TOO_LONG:
      return Sent::too_long;
    default:
      return Sent::not_joined;
  }
}

void Endpoint::ask(const NodeId& peer, std::uint64_t number, std::string_view question) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(question.data());
  todoke_iroh_ask(handle_->node, peer.bytes().data(), number, data, question.size());
}

void Endpoint::answer(std::uint64_t number, std::optional<std::string_view> answer) {
  // An empty answer is one.
  const auto* data = answer ? reinterpret_cast<const std::uint8_t*>(answer->data()) : nullptr;
  todoke_iroh_answer(handle_->node, number, data, answer ? answer->size() : 0);
}

NodeId id_of(const SecretKey& key) {
  NodeId::Bytes id{};
  if (!todoke_iroh_id_of(key.data(), id.data())) throw std::runtime_error("the gossip key is none");
  return NodeId(id);
}

}  // namespace todoke::gossip

#else

namespace todoke::gossip {

std::unique_ptr<Endpoint> Endpoint::start(const EndpointOptions& /*options*/,
                                          EndpointListener& /*listener*/) {
  throw UserError(fmt::format("this build has no gossip: {}", left_out()));
}

Endpoint::~Endpoint() {
  handle_ = nullptr;
}
std::vector<std::string> Endpoint::addresses() const {
  return {};
}
void Endpoint::dial(const NodeId& /*peer*/, const std::string& /*address*/) {}
void Endpoint::forget(const NodeId& /*peer*/) {}
void Endpoint::block(std::span<const NodeId> /*peers*/) {}
bool Endpoint::join(const ChannelId& /*channel*/, std::span<const NodeId> /*peers*/) {
  return false;
}
void Endpoint::leave(const ChannelId& /*channel*/) {}
Sent Endpoint::send(const ChannelId& /*channel*/, std::string_view /*bytes*/) {
  return Sent::not_joined;
}
void Endpoint::ask(const NodeId& /*peer*/, std::uint64_t /*number*/, std::string_view /*question*/) {}
void Endpoint::answer(std::uint64_t /*number*/, std::optional<std::string_view> /*answer*/) {}
NodeId id_of(const SecretKey& key) {
  return NodeId(key);
}

}  // namespace todoke::gossip

#endif
