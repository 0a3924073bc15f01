// Topics in parameters and bodies of the User API, and the services that a subscription opens.
#pragma once

#include <string>
#include <string_view>

#include "api/route.hpp"
#include "users/desk.hpp"

namespace todoke::users {

api::Schema topic_schema(std::string_view meaning);
api::Schema services_schema(std::string_view meaning);

// The topic id that the text is; refused: it is none.
Checked<std::string> topic_id_in(const Desk& desk, std::string_view text, std::string_view field);
// The id that a name stands for.
Checked<std::string> topic_id_of(const Desk& desk, std::string_view name, std::string_view field);

}  // namespace todoke::users
