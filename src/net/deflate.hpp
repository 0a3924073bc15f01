// permessage-deflate (RFC 7692) without context takeover: every message stands alone, so one compressed frame
// serves all its receivers and no connection keeps a compressor. Both sides of the negotiation, and the two
// transformations. The zlib states (about 270 KiB to compress, 60 KiB to inflate) belong to the thread and
// are used again.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace todoke::net {

// Server side. `offers` is the joined Sec-WebSocket-Extensions. Gives the answer for the first offer that can
// be accepted; nothing when there is none: other extensions, unknown, repeated or malformed parameters, or a
// server window below 2^15 (shared frames are compressed with the full window). A list that is not one by
// grammar is refused.
Expected<std::optional<std::string>> accept_deflate(std::string_view offers);

// Client side: what is offered, and whether the answer agreed. An answer that goes beyond the offer is
// refused.
inline constexpr std::string_view kDeflateOffer =
    "permessage-deflate; client_no_context_takeover; server_no_context_takeover";
Expected<bool> deflate_agreed(std::string_view answer);

// The payload of a compressed message: raw deflate at level 1, ended by a flush whose 00 00 FF FF is left
// off.
std::string deflate_message(std::string_view message);

enum class Inflated { ok, too_big, invalid };

// The opposite, into `out` (replaced). Stops at `bytes_max` whatever the input promises.
Inflated inflate_message(std::string_view compressed, std::size_t bytes_max, std::string& out);

}  // namespace todoke::net
