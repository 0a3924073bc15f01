# todoke_test(NAME SOURCES file... [LIBS target...] [LABELS label...] [PROPERTIES ...])
#
# A gtest binary whose cases are ctest tests of their own. Labels:
#   (none)    unit: needs nothing but the binary
#   postgres  gets a database server from the fixture (tests/harness)
#   release   runs the release binary `todoke`; left out of the sanitizer build
include(GoogleTest)
find_package(GTest REQUIRED)
enable_testing()
# Where the fixture writes down which server it started.
set(TODOKE_TEST_POSTGRES ${CMAKE_BINARY_DIR}/tests/postgres_folder)

function(todoke_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS;LABELS;PROPERTIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBS} GTest::gtest GTest::gmock todoke_test_main)
  set(properties TIMEOUT 120 ${arg_PROPERTIES})
  if(arg_LABELS)
    list(APPEND properties LABELS "${arg_LABELS}")
  endif()
  if("postgres" IN_LIST arg_LABELS)
    list(APPEND properties FIXTURES_REQUIRED postgres ENVIRONMENT TODOKE_TEST_POSTGRES=${TODOKE_TEST_POSTGRES})
  endif()
  gtest_discover_tests(${name} PROPERTIES ${properties} DISCOVERY_TIMEOUT 60)
endfunction()

# todoke_release_test(NAME SOURCES file... [LIBS target...] [POSTGRES] [PROPERTIES ...])
#
# A test with the label `release`, built by the target release_tests; POSTGRES: it gets a database server. A sanitizer
# build only compiles it (for lint): the suites test its own binaries.
if(NOT TODOKE_SANITIZE)
  add_custom_target(release_tests)
endif()

function(todoke_release_test name)
  cmake_parse_arguments(arg "POSTGRES" "" "SOURCES;LIBS;PROPERTIES" ${ARGN})
  if(TODOKE_SANITIZE)
    add_executable(${name} ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE ${arg_LIBS} GTest::gtest GTest::gmock todoke_test_main)
    return()
  endif()
  if(arg_POSTGRES)
    list(APPEND arg_PROPERTIES FIXTURES_REQUIRED postgres ENVIRONMENT TODOKE_TEST_POSTGRES=${TODOKE_TEST_POSTGRES})
  endif()
  todoke_test(${name} SOURCES ${arg_SOURCES} LIBS ${arg_LIBS} LABELS release PROPERTIES ${arg_PROPERTIES})
  add_dependencies(release_tests ${name})
endfunction()

# The unit tests beside the code of the current room.
function(todoke_unit_tests room)
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cpp)
  if(tests)
    todoke_test(${room}_test SOURCES ${tests} LIBS todoke_${room} ${ARGN})
  endif()
endfunction()
