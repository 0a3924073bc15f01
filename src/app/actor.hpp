// Who stands in an audit for what a command does: the user of the operating system, as operator:<name>.
#pragma once

#include <string>

namespace todoke::app {

std::string actor();

}  // namespace todoke::app
