# todoke_migrations(TARGET FOLDER)
#
# Compiles FOLDER/NNNN_name.sql into TARGET as pg::embedded_migrations(). The build stops at gaps and duplicates in the numbers.
function(todoke_migrations target folder)
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*.sql)
  set(out ${CMAKE_BINARY_DIR}/generated/${target}/migrations.cpp)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} -DOUT=${out} -P ${CMAKE_SOURCE_DIR}/cmake/embed_migrations.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/embed_migrations.cmake
    COMMENT "Embedding the migrations")
  target_sources(${target} PRIVATE ${out})
endfunction()
