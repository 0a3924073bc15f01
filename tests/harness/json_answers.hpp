// Answers of a JSON API, as tests look at them.
#pragma once

#include <string>
#include <string_view>

#include "harness/http_rig.hpp"

namespace todoke::test {

// A member of a JSON object as text: strings decoded, others as written, "null"; `details.field` goes into
// objects, `items.0` into lists.
std::string member(const std::string& json, std::string_view path);
// Status and code of an answer, such as "503 UNAVAILABLE".
std::string code(const net::test::RawResponse& response);

}  // namespace todoke::test
