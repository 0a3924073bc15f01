# todoke_sql(TARGET file.sql)
#
# Makes <room>/<file>_sql.hpp of a file of named statements and lets TARGET include it as "<room>/<file>_sql.hpp", in the
# namespace of the outermost room:
#
#   -- name: claim_batch            inline constexpr pg::Statement kClaimBatch{"claim_batch", R"sql(...)sql"};
#   WITH cte AS ...
#
# A comment block before a name belongs to the reader and is left out of what is sent.
function(todoke_sql target file)
  get_filename_component(stem ${file} NAME_WE)
  file(RELATIVE_PATH room ${CMAKE_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" outer ${room})
  set(out ${CMAKE_BINARY_DIR}/generated/${target}/${room}/${stem}_sql.hpp)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DIN=${CMAKE_CURRENT_SOURCE_DIR}/${file} -DOUT=${out} -DNAMESPACE=todoke::${outer}::sql
            -P ${CMAKE_SOURCE_DIR}/cmake/embed_statements.cmake
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file} ${CMAKE_SOURCE_DIR}/cmake/embed_statements.cmake
    COMMENT "Embedding ${room}/${file}")
  target_sources(${target} PRIVATE ${out})
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/generated/${target})
endfunction()
