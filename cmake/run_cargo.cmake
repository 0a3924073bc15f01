# Builds ARGUMENTS of the crate CRATE in FOLDER, for all presets and worktrees the same, and copies FILE of its release build to OUT.
cmake_minimum_required(VERSION 3.25)
file(MAKE_DIRECTORY ${FOLDER})
# Another worktree must not replace the file before it is copied.
file(LOCK ${FOLDER}/todoke.lock GUARD PROCESS)
# cargo goes by times: sources that are older than what another worktree has built here from other sources are no news to it.
file(GLOB sources ${CRATE}/src/*.rs ${CRATE}/examples/*.rs)
set(hashes "")
foreach(source IN LISTS sources)
  file(SHA256 ${source} hash)
  string(APPEND hashes ${hash})
endforeach()
set(built "")
if(EXISTS ${FOLDER}/todoke.sources)
  file(READ ${FOLDER}/todoke.sources built)
endif()
if(NOT built STREQUAL hashes)
  file(TOUCH_NOCREATE ${sources})
  file(WRITE ${FOLDER}/todoke.sources ${hashes})
endif()
separate_arguments(ARGUMENTS)
execute_process(
  COMMAND ${CARGO} build --quiet --release --locked --manifest-path ${CRATE}/Cargo.toml --target-dir ${FOLDER} ${ARGUMENTS}
  COMMAND_ERROR_IS_FATAL ANY)
get_filename_component(out_folder ${OUT} DIRECTORY)
file(MAKE_DIRECTORY ${out_folder})
file(COPY_FILE ${FOLDER}/release/${FILE} ${OUT} ONLY_IF_DIFFERENT)
file(TOUCH_NOCREATE ${OUT})
