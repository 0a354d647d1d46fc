// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/testing/simulated_communicator.hpp>

#include <cstddef>
#include <functional>

#include "recorded_reductions.hpp"
#include "scenario.hpp"

namespace adasum::test::model {

/// Records what the function does on simulated ranks: threads that take turns, in an order that is always the same.
/// @param bytes  of a slice of a gradient, of which there are as many as ranks
recorded record(const scenario& one, std::size_t bytes,
                const std::function<void(const simulated_communicator&)>& reduce);

}  // namespace adasum::test::model
