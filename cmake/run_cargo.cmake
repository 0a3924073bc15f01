# Builds ARGUMENTS of the crate CRATE in FOLDER, for all presets and worktrees the same, and copies FILE of its release build to OUT.
cmake_minimum_required(VERSION 3.25)
file(MAKE_DIRECTORY ${FOLDER})
# Another worktree must not replace the file before it is copied.
file(LOCK ${FOLDER}/todoke.lock GUARD PROCESS)
separate_arguments(ARGUMENTS)
execute_process(
  COMMAND ${CARGO} build --quiet --release --locked --manifest-path ${CRATE}/Cargo.toml --target-dir ${FOLDER} ${ARGUMENTS}
  COMMAND_ERROR_IS_FATAL ANY)
get_filename_component(out_folder ${OUT} DIRECTORY)
file(MAKE_DIRECTORY ${out_folder})
file(COPY_FILE ${FOLDER}/release/${FILE} ${OUT} ONLY_IF_DIFFERENT)
file(TOUCH_NOCREATE ${OUT})
