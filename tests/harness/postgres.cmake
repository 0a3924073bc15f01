# The Postgres server of a test run (fixture `postgres`, see cmake/tests.cmake).
add_test(NAME postgres_start COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/postgres.sh start ${TODOKE_TEST_POSTGRES})
add_test(NAME postgres_stop COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/postgres.sh stop ${TODOKE_TEST_POSTGRES})
set_tests_properties(postgres_start PROPERTIES FIXTURES_SETUP postgres TIMEOUT 120)
set_tests_properties(postgres_stop PROPERTIES FIXTURES_CLEANUP postgres TIMEOUT 120)
