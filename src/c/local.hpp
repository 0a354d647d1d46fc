// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <span>

#include <adasum/adasum.h>

#include "arguments.hpp"

namespace adasum::c {

/// adasum_combine. @throws what it returns as numbers
void combine(std::span<const void* const> gradients, void* out, const call_arguments& given, segments cut,
             adasum_report* report);

}  // namespace adasum::c
