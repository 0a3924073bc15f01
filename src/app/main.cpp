#include "app/commands.hpp"

int main(int argc, char** argv) {
  return todoke::app::run_program({argv + 1, argv + argc});
}
