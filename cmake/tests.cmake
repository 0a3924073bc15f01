# todoke_test(NAME SOURCES file... [LIBS target...] [THREADS] [LABELS label...] [PROPERTIES ...])
#
# A gtest binary whose cases are ctest tests of their own. Labels:
#   postgres  gets a database server from the fixture (tests/harness)
#   embedded  runs database clusters of its own, and kills them
#   release   runs the release binary `todoke`; left out of the sanitizer builds
#   threads   (THREADS) several threads share what it tests: ThreadSanitizer runs it too. The target threaded_tests builds these.
#   quick     neither embedded nor release: what `make quick` runs. The target quick_tests builds these.
# A discovered test can have one label only, so that of a test joins all of these; `ctest -L` looks for a part of it.
include(GoogleTest)
find_package(GTest REQUIRED)
enable_testing()
# Where the fixture writes down which server it started.
set(TODOKE_TEST_POSTGRES ${CMAKE_BINARY_DIR}/tests/postgres_folder)

add_custom_target(threaded_tests)
add_custom_target(quick_tests)

function(todoke_test name)
  cmake_parse_arguments(arg "THREADS" "" "SOURCES;LIBS;LABELS;PROPERTIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBS} GTest::gtest GTest::gmock todoke_test_main)
  if(arg_THREADS)
    list(APPEND arg_LABELS threads)
    add_dependencies(threaded_tests ${name})
  endif()
  if(NOT "embedded" IN_LIST arg_LABELS AND NOT "release" IN_LIST arg_LABELS)
    list(APPEND arg_LABELS quick)
    add_dependencies(quick_tests ${name})
  endif()
  list(JOIN arg_LABELS "+" label)
  set(properties TIMEOUT 120 LABELS ${label} ${arg_PROPERTIES})
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
