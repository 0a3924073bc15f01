// What a failure of a consumer means, and how it is written down.
#pragma once

#include <exception>
#include <string>

namespace todoke::outbox {

// Whether the failure is no row's fault: the database as a whole fails, or the consumer says NotNow.
bool is_about_everything(const std::exception_ptr& failure);

// What it says, as a text that Postgres takes, of at most 1,000 bytes: an error that can't be written down
// would keep its row from being buried.
std::string failure_text(const std::exception_ptr& failure);

}  // namespace todoke::outbox
