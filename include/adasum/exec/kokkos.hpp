// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include "kokkos/space.hpp"
#include "kokkos/view.hpp"
