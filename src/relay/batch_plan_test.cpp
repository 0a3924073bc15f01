#include "relay/batch_plan.hpp"

#include <gtest/gtest.h>
