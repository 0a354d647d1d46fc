// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <optional>
#include <string>

#include "../c/arguments.hpp"
#include "../c/calls.hpp"
#include "group_worker.hpp"

namespace adasum::python {

/// By what tensors are reduced: the library's compiled kernels, or PyTorch's own operators.
enum class kernels { pytorch, compiled };
const char* to_string(kernels which);

/// What a user asks for: one of them, or, if null, the compiled ones where there are some for the tensor's device.
using kernel_choice = std::optional<kernels>;
/// @throws bad_input  neither "auto" nor "pytorch" nor "compiled"
kernel_choice kernel_choice_of(const std::string& text);

/// @throws bad_input  there are no compiled kernels for this device
kernels kernels_for(at::Device device, kernel_choice choice);

/// For each type of device, what aten_space is told of the processor.
using processor_names = std::map<std::string, std::string>;

/// Makes a plan for tensors of a device. Collective: all ranks learn if one fails.
/// @param type   as the C interface numbers it
/// @param given  the call, for messages to the others
void make_plan(c::any_plan& plan, group_worker& worker, at::Device device, kernels which, int type,
               const c::request& asked, const c::call_arguments& given, const processor_names& processors);

}  // namespace adasum::python
