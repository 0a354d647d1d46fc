// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Never compiled: check_layers.cmake must object to both includes.
#pragma once

#include <adasum/plan.hpp>
#include "../exec/space.hpp"
