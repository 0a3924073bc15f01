// A statement as it stands in a .sql file: its name (logs, errors, pg_prepared_statements) and its text.
// Both are literals; cmake/sql.cmake makes the constants.
#pragma once

#include <string_view>

namespace todoke::pg {

struct Statement {
  std::string_view name;
  std::string_view sql;
};

}  // namespace todoke::pg
