// Writes JSON text: logs, error bodies, health, OTLP. Appends to one string, no tree. The caller gives the
// structure in order; commas and escapes are done here.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json_escape.hpp"

namespace todoke {

class JsonWriter {
 public:
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag);
  JsonWriter& value(double number);  // not finite: null
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  JsonWriter& value(T number) {
    return raw(std::to_string(number));
  }
  JsonWriter& null() { return raw("null"); }
  // Text that is JSON already.
  JsonWriter& raw(std::string_view json);

  template <class T>
  JsonWriter& member(std::string_view name, const T& v) {
    return key(name).value(v);
  }

  [[nodiscard]] const std::string& text() const& { return out_; }
  [[nodiscard]] std::string text() && { return std::move(out_); }

 private:
  void separate();
  std::string out_;
  bool comma_ = false;
};

}  // namespace todoke
