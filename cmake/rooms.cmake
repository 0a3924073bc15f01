# todoke_room(NAME [ROOMS room...] [LIBS library...])
#
# Makes the library todoke_NAME of the .cpp files in the current folder (files that end in _test.cpp are left out) and lets
# it include its own headers and those of ROOMS, nothing else: a check that runs before the library is compiled stops the
# build at any other include of a room.
function(todoke_room name)
  cmake_parse_arguments(arg "" "" "ROOMS;LIBS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  file(GLOB checked CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/*.hpp)

  add_library(todoke_${name} STATIC ${sources})
  target_include_directories(todoke_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  list(TRANSFORM arg_ROOMS PREPEND todoke_ OUTPUT_VARIABLE room_targets)
  target_link_libraries(todoke_${name} PUBLIC ${room_targets} ${arg_LIBS})

  set(stamp ${CMAKE_CURRENT_BINARY_DIR}/includes.stamp)
  list(JOIN arg_ROOMS "," allowed)
  add_custom_command(
    OUTPUT ${stamp}
    COMMAND ${CMAKE_COMMAND} -DROOM=${name} -DALLOWED=${allowed} -DSRC=${CMAKE_SOURCE_DIR}/src
            -P ${CMAKE_SOURCE_DIR}/cmake/check_includes.cmake
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS ${checked} ${CMAKE_SOURCE_DIR}/cmake/check_includes.cmake
    COMMENT "Checking what src/${name} includes")
  add_custom_target(todoke_${name}_includes DEPENDS ${stamp})
  add_dependencies(todoke_${name} todoke_${name}_includes)
endfunction()
