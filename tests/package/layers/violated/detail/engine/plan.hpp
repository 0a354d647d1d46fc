// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Never compiled: check_layers.cmake has nothing to object to here.
#pragma once

#include "../numerics/one_window.hpp"
