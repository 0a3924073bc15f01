# The harness for tests that need Postgres, and the server of a test run (fixture `postgres`, see cmake/tests.cmake).
add_library(todoke_harness STATIC test_database.cpp)
target_include_directories(todoke_harness PUBLIC ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(todoke_harness PUBLIC todoke_pg GTest::gtest)

add_test(NAME postgres_start COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/postgres.sh start ${TODOKE_TEST_POSTGRES})
add_test(NAME postgres_stop COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/postgres.sh stop ${TODOKE_TEST_POSTGRES})
set_tests_properties(postgres_start PROPERTIES FIXTURES_SETUP postgres TIMEOUT 120)
set_tests_properties(postgres_stop PROPERTIES FIXTURES_CLEANUP postgres TIMEOUT 120)
