// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include "serial/double_space.hpp"  // IWYU pragma: export
#include "serial/space.hpp"         // IWYU pragma: export
