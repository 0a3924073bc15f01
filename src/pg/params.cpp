#include "pg/params.hpp"

#include <stdexcept>

namespace todoke::pg {

namespace {
// The server takes no message beyond 1 GiB; what is larger is a mistake and is refused before it is copied
// any further.
constexpr std::size_t kParamsBytesMax = (std::size_t{1} << 30) - (std::size_t{1} << 20);
// A 16-bit count in the protocol.
constexpr std::size_t kParamsMax = 65'535;
constexpr std::uint64_t kNullLength = 0xFFFF'FFFF;
constexpr std::size_t kLengthBytes = 4;

void overwrite_int32(std::string& bytes, std::size_t at, std::size_t value) {
  std::string encoded;
  append_int(encoded, value, kLengthBytes);
  bytes.replace(at, kLengthBytes, encoded);
}
}  // namespace

Params& Params::add_null_of(Oid oid) {
  begin(oid);
  values_.back().null = true;
  return *this;
}

void Params::begin(Oid oid) {
  if (values_.size() == kParamsMax) throw std::length_error("more than 65,535 parameters");
  values_.push_back({oid, false, bytes_.size(), 0});
}

Params& Params::end() {
  if (bytes_.size() > kParamsBytesMax) throw std::length_error("the parameters of a statement exceed 1 GiB");
  values_.back().length = bytes_.size() - values_.back().at;
  return *this;
}

std::size_t Params::array_header(Oid element, std::size_t size) {
  const std::uint64_t dimensions = size == 0 ? 0 : 1;
  append_int(bytes_, dimensions, 4);
  const auto has_null_at = bytes_.size();
  append_int(bytes_, 0, 4);
  append_int(bytes_, element, 4);
  if (dimensions == 1) {
    append_int(bytes_, size, 4);
    append_int(bytes_, 1, 4);  // subscripts start at 1
  }
  return has_null_at;
}

void Params::array_null(std::size_t has_null_at) {
  overwrite_int32(bytes_, has_null_at, 1);
  append_int(bytes_, kNullLength, kLengthBytes);
}

std::size_t Params::begin_element() {
  const auto at = bytes_.size();
  append_int(bytes_, 0, kLengthBytes);
  return at;
}

void Params::end_element(std::size_t at) {
  if (bytes_.size() > kParamsBytesMax) throw std::length_error("the parameters of a statement exceed 1 GiB");
  overwrite_int32(bytes_, at, bytes_.size() - at - kLengthBytes);
}

}  // namespace todoke::pg
