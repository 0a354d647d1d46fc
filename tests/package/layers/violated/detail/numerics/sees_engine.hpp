// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Never compiled: check_layers.cmake must object to the first include, not to the second.
#pragma once

#include "../engine/plan.hpp"
#include "one_window.hpp"
