// `todoke orders reconcile`.
#pragma once

#include "app/command.hpp"
#include "base/config.hpp"

namespace todoke::app {

// 0: all books agree; 1: they don't, or what the broker has of an order is not known.
int reconcile_orders(const Config& config, const Arguments& arguments);

}  // namespace todoke::app
