# todoke_room(ROOM [ROOMS room...] [LIBS library...])
#
# Makes a library of the .cpp files in the current folder, src/ROOM; main.cpp and files that end in _test.cpp are left out. ROOM
# may be a room inside a room, such as orders/core: its library is todoke_orders_core. A room may include its own headers and
# those of ROOMS, each named by its whole path, and nothing else: a check that runs before the library is compiled stops the
# build at any other include of a room.
function(todoke_room room)
  cmake_parse_arguments(arg "" "" "ROOMS;LIBS" ${ARGN})
  todoke_room_target(${room} target)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cpp$")
  file(GLOB checked CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/*.hpp)

  add_library(${target} STATIC ${sources})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  set(room_targets "")
  foreach(other IN LISTS arg_ROOMS)
    todoke_room_target(${other} other_target)
    list(APPEND room_targets ${other_target})
  endforeach()
  target_link_libraries(${target} PUBLIC ${room_targets} ${arg_LIBS})

  set(stamp ${CMAKE_CURRENT_BINARY_DIR}/includes.stamp)
  list(JOIN arg_ROOMS "," allowed)
  add_custom_command(
    OUTPUT ${stamp}
    COMMAND ${CMAKE_COMMAND} -DROOM=${room} -DALLOWED=${allowed} -DSRC=${CMAKE_SOURCE_DIR}/src
            -P ${CMAKE_SOURCE_DIR}/cmake/check_includes.cmake
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS ${checked} ${CMAKE_SOURCE_DIR}/cmake/check_includes.cmake
    COMMENT "Checking what src/${room} includes")
  add_custom_target(${target}_includes DEPENDS ${stamp})
  add_dependencies(${target} ${target}_includes)
endfunction()

# orders/core: todoke_orders_core
function(todoke_room_target room out)
  string(REPLACE "/" "_" name ${room})
  set(${out} todoke_${name} PARENT_SCOPE)
endfunction()
