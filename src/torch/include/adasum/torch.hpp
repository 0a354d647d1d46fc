// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The library with PyTorch's process groups and tensors, in one include.

#include <adasum/core/config.hpp>

#include <adasum/adasum.hpp>       // IWYU pragma: export
#include "communicators/c10d.hpp"  // IWYU pragma: export
#include "exec/aten.hpp"           // IWYU pragma: export
#include "torch_tensor.hpp"        // IWYU pragma: export
