# FOLDER: numbered .sql files. OUT: a .cpp with their text, in order.
cmake_minimum_required(VERSION 3.25)
file(GLOB files ${FOLDER}/*.sql)
list(SORT files)
set(body "")
set(expected 1)
foreach(file IN LISTS files)
  get_filename_component(stem ${file} NAME_WE)
  if(NOT stem MATCHES "^([0-9][0-9][0-9][0-9])_([a-z0-9_]+)$")
    message(FATAL_ERROR "${file}: a migration is named NNNN_name.sql")
  endif()
  set(number ${CMAKE_MATCH_1})
  set(name ${CMAKE_MATCH_2})
  string(REGEX REPLACE "^0+" "" number "${number}")
  if(NOT number STREQUAL expected)
    message(FATAL_ERROR "${file}: its number should be ${expected} (a gap or a duplicate)")
  endif()
  math(EXPR expected "${expected} + 1")
  file(READ ${file} sql)
  string(FIND "${sql}" ")migration\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${file}: holds the characters that end it in the program")
  endif()
  string(APPEND body "    {${number}, \"${name}\", R\"migration(${sql})migration\"},\n")
endforeach()
math(EXPR count "${expected} - 1")
# A schema may be longer than the 65,536 characters that every compiler has to take; GCC and clang take it.
file(WRITE ${OUT} "// Made from migrations/.
#include <array>

#include \"pg/migrations.hpp\"

namespace todoke::pg {

namespace {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \"-Woverlength-strings\"
constexpr std::array<Migration, ${count}> kMigrations{{
${body}}};
#pragma GCC diagnostic pop
}  // namespace

std::span<const Migration> embedded_migrations() { return kMigrations; }

}  // namespace todoke::pg
")
